"""Prints the text objects of an uncompressed PDF file."""

import re
import sys

with open(sys.argv[1], "rb") as file:
    for text in re.findall(rb"\(([^)]*)\)\s*Tj", file.read()):
        print(text.decode("latin-1"))

"""Runs `duplexer doctor` on sound servers of the official Python package.

Usage: doctor.py DUPLEXER

There must be no errors, and exactly the warnings that `interop/doctor/python.txt` records.
"""

import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
SERVER = HERE / "sound.py"
RECORDED = HERE.parent / "doctor" / "python.txt"


def recorded(mode):
    lines = [line.split() for line in RECORDED.read_text().splitlines() if line and not line.startswith("#")]
    return sorted(rule for name, rule in lines if name == mode)


def examine(program, mode, words):
    command = [program, "doctor", "--json", "--timeout", "30", *words]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300)
    report = json.loads(ran.stdout)
    found = {level: [one for one in report["findings"] if one["severity"] == level] for level in ("error", "warning")}
    warnings = sorted({one["rule"] for one in found["warning"]})
    shown = json.dumps(report["findings"], indent=2)
    if found["error"] or ran.returncode != 0:
        raise AssertionError(f"{mode}: errors on a sound server: {shown}")
    if warnings != recorded(mode):
        raise AssertionError(f"{mode}: the recorded warnings are {recorded(mode)}, found: {shown}")
    print(f"{mode}: {len(report['checked'])} rules, no errors, {len(warnings)} warnings as recorded")


def main():
    program = sys.argv[1]
    examine(program, "stdio", ["--", sys.executable, str(SERVER), "stdio"])
    for mode in ("http", "json", "stateless"):
        server = subprocess.Popen([sys.executable, str(SERVER), mode], stdout=subprocess.PIPE, text=True)
        try:
            examine(program, mode, [server.stdout.readline().strip()])
        finally:
            server.kill()
            server.wait()


main()

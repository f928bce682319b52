"""Runs a whole OAuth flow with the official Python client, and fails on the first difference.

Usage: oauth.py URL   a protected server with an authorization server beside it
"""

import re
import sys
import warnings
from urllib.parse import parse_qs, urljoin, urlparse

import anyio
import httpx2
from mcp import Client
from mcp.client.auth import OAuthClientProvider, TokenStorage
from mcp.client.auth import AuthorizationCodeResult
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientMetadata

warnings.simplefilter("ignore")

REDIRECT = "http://127.0.0.1:9/callback"
CHECKS = 0


def check(actual, expected, what):
    global CHECKS
    CHECKS += 1
    if actual != expected:
        raise SystemExit(f"FAILED: {what}: expected {expected!r}, got {actual!r}")


class Memory(TokenStorage):
    def __init__(self):
        self.tokens = None
        self.client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client_info):
        self.client = client_info


class Browser:
    """Opens the consent page, checks its text and submits the decision."""

    def __init__(self):
        self.pages = 0
        self.asked = []
        self.answer = None

    async def open(self, url):
        self.pages += 1
        self.asked.append(parse_qs(urlparse(url).query)["scope"][0].split())
        async with httpx2.AsyncClient() as http:
            page = await http.get(url)
            check(page.status_code, 200, "the page of consent")
            check("Interop client" in page.text, True, "the page says who asks")
            action = re.search(r'action="([^"]+)"', page.text).group(1)
            handle = re.search(r'name="request" value="([^"]+)"', page.text).group(1)
            form = {"request": handle, "decision": "allow"}
            response = await http.post(urljoin(url, action), data=form)
        check(response.status_code, 302, "the way back to the client")
        back = urlparse(response.headers["location"])
        check(f"{back.scheme}://{back.netloc}{back.path}", REDIRECT, "where the browser goes")
        self.answer = {name: values[0] for name, values in parse_qs(back.query).items()}

    async def wait(self):
        answer = self.answer
        return AuthorizationCodeResult(code=answer["code"], state=answer["state"], iss=answer["iss"])


def text(result):
    return result.content[0].text


async def connected(url, storage, browser, mode, steps):
    provider = OAuthClientProvider(
        server_url=url,
        client_metadata=OAuthClientMetadata(
            client_name="Interop client",
            redirect_uris=[REDIRECT],
            grant_types=["authorization_code", "refresh_token"],
            response_types=["code"],
        ),
        storage=storage,
        redirect_handler=browser.open,
        callback_handler=browser.wait,
    )
    async with httpx2.AsyncClient(auth=provider, timeout=30) as http:
        async with Client(streamable_http_client(url, http_client=http), mode=mode) as client:
            await steps(client)


async def flow(url, mode):
    storage, browser = Memory(), Browser()

    async def first(client):
        check(text(await client.call_tool("echo", {"text": "hello"})), "hello", "a call with a token")
        check(browser.pages, 1, "one page was opened")
        check(browser.asked[0], ["mcp"], "what was asked for")
        # This tool requires another scope: the client is challenged, asks its user again, and retries.
        await client.call_tool("change", {})
        check(browser.pages, 2, "a second page for the second scope")
        check(set(browser.asked[1]), {"mcp", "write"}, "all that the tool takes, in one challenge")

    await connected(url, storage, browser, mode, first)
    check(storage.client.client_id is not None, True, "the client has registered itself")
    check(set(storage.tokens.scope.split()), {"mcp", "write"}, "the scopes of the token")

    # The access token is removed; the refresh token gets another one, without a page.
    storage.tokens = storage.tokens.model_copy(update={"access_token": "gone", "expires_in": -1})

    async def second(client):
        check(text(await client.call_tool("echo", {"text": "again"})), "again", "a call with a new token")

    await connected(url, storage, browser, mode, second)
    check(storage.tokens.access_token != "gone", True, "there is another access token")


async def main():
    url = sys.argv[1]
    async with httpx2.AsyncClient() as http:
        refused = await http.post(url, json={})
        check(refused.status_code, 401, "without a token")
    await flow(url, "auto")
    await flow(url, "legacy")
    print(f"python client with OAuth: {CHECKS} checks passed")


anyio.run(main)

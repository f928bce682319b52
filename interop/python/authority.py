"""Serves tools that need a token, with the authorization server of the official Python package, in memory.

The first line of output is the URL. A refresh token is accepted once. The tool `token` returns the number of the token
that the call came with; `expire` makes the server forget it.
A logout revokes nothing: the revocation endpoint of the package requires `client_secret` in the form, also of clients
that authenticate with a header.
"""

import secrets
import socket
import time

import uvicorn
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import AccessToken, AuthorizationCode, RefreshToken, construct_redirect_uri
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions, RevocationOptions
from mcp.server.mcpserver import MCPServer
from mcp.shared.auth import OAuthToken

LIFETIME = 3600


class Provider:
    """Everybody who opens the login page is logged in."""

    def __init__(self):
        self.clients = {}
        self.codes = {}
        self.access = {}
        self.refresh = {}
        self.issued = 0

    async def get_client(self, client_id):
        return self.clients.get(client_id)

    async def register_client(self, client_info):
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client, params):
        code = secrets.token_hex(20)
        self.codes[code] = AuthorizationCode(
            code=code,
            client_id=client.client_id,
            scopes=params.scopes or [],
            expires_at=time.time() + 60,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        return construct_redirect_uri(str(params.redirect_uri), code=code, state=params.state)

    async def load_authorization_code(self, client, authorization_code):
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(self, client, authorization_code):
        del self.codes[authorization_code.code]
        return self.issue(client, authorization_code.scopes, authorization_code.resource)

    async def load_refresh_token(self, client, refresh_token):
        return self.refresh.get(refresh_token)

    async def exchange_refresh_token(self, client, refresh_token, scopes):
        await self.revoke_token(refresh_token)
        return self.issue(client, scopes, refresh_token.resource)

    async def load_access_token(self, token):
        return self.access.get(token)

    async def revoke_token(self, token):
        for tokens in (self.access, self.refresh):
            of_client = [name for name, other in tokens.items() if other.client_id == token.client_id]
            for name in of_client:
                del tokens[name]

    def issue(self, client, scopes, resource):
        self.issued += 1
        shared = {"client_id": client.client_id, "scopes": scopes, "resource": resource}
        access = f"{self.issued}-{secrets.token_hex(20)}"
        refresh = secrets.token_hex(20)
        expires_at = int(time.time()) + LIFETIME
        self.access[access] = AccessToken(token=access, expires_at=expires_at, **shared)
        self.refresh[refresh] = RefreshToken(token=refresh, **shared)
        return OAuthToken(
            access_token=access,
            refresh_token=refresh,
            token_type="Bearer",
            expires_in=LIFETIME,
            scope=" ".join(scopes),
        )


def main():
    listener = socket.create_server(("127.0.0.1", 0))
    base = f"http://127.0.0.1:{listener.getsockname()[1]}"
    provider = Provider()
    server = MCPServer(
        "authority",
        auth_server_provider=provider,
        auth=AuthSettings(
            issuer_url=base,
            resource_server_url=f"{base}/mcp",
            validate_token_resource=True,
            required_scopes=["mcp"],
            client_registration_options=ClientRegistrationOptions(enabled=True, valid_scopes=["mcp"]),
            revocation_options=RevocationOptions(enabled=True),
        ),
    )

    @server.tool()
    def token() -> str:
        return get_access_token().token.split("-")[0]

    @server.tool()
    def expire() -> str:
        del provider.access[get_access_token().token]
        return "expired"

    @server.tool()
    def totals() -> str:
        return f"{len(provider.clients)} clients, {provider.issued} tokens"

    print(f"{base}/mcp", flush=True)
    config = uvicorn.Config(server.streamable_http_app(), log_level="warning")
    uvicorn.Server(config).run(sockets=[listener])


main()

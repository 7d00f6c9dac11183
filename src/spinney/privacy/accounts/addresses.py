"""Addresses of PostgreSQL servers: read as libpq reads them, refused in clear words, and shown without a password.

`postgresql://user:password@host:port/database?option=value`. In a user, a password or a name `/`, `@`, `#` and the like
are written as `%2F`, `%40`, `%23`; where they are not, libpq takes a part of a password for a host, a port or a name.
Whatever an address holds may be such a part, so nothing of one that is refused is told, but the name of an option.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from spinney.errors import ParameterError

SCHEMES = ("postgresql", "postgres")
_REMEDY = (
    "write it as postgresql://user@host:port/database, with every /, @, #, ? and % of a password as %2F, %40, %23, %3F "
    "and %25; better, keep the password in ~/.pgpass or PGPASSWORD"
)
_HOST = re.compile(r"(?:[0-9A-Za-z_.:\-]|/)*")
_PORT = re.compile(r"[0-9]{0,5}")
_UNKNOWN_OPTION = re.compile(r'invalid URI query parameter: "([A-Za-z_]{1,40})"')


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server is, and what must not be shown of how to get in."""

    given: dict[str, Any]
    shown: str  # without a password
    secrets: tuple[str, ...]

    def redacted(self, text: str) -> str:
        """A message of the server or the driver, without a password."""
        for secret in self.secrets:
            text = text.replace(secret, "***")
        return text


def parse_address(url: str, psycopg: Any) -> Address:
    """What libpq makes of an address; a ParameterError where it is none that anybody meant."""
    try:
        given = psycopg.conninfo.conninfo_to_dict(url)
    except psycopg.Error as err:
        option = _UNKNOWN_OPTION.search(str(err))
        if option is not None:
            raise ParameterError(
                f"the address of the ledger has the option {option[1]!r}, which PostgreSQL does not know; check its "
                "spelling, as in ?sslmode=verify-full"
            ) from None
        raise ParameterError(f"the address of the ledger cannot be read; {_REMEDY}") from None
    hosts = str(given.get("host") or "").split(",")
    ports = str(given.get("port") or "").split(",")
    name = str(given.get("dbname") or "")
    if not all(map(_HOST.fullmatch, hosts)) or not all(map(_PORT.fullmatch, ports)) or re.search(r"[@/#?]", name):
        raise ParameterError(f"the address of the ledger has an odd host, port or database; {_REMEDY}")
    if any(port and not 1 <= int(port) <= 65_535 for port in ports):
        raise ParameterError("the port in the address of the ledger is not in 1..65535")
    if len(ports) > 1 and len(ports) != len(hosts):
        raise ParameterError("the address of the ledger names another number of ports than of hosts")
    secrets = tuple(str(given[key]) for key in ("password", "sslpassword") if given.get(key))
    return Address(given, _shown(given, hosts, ports, name), secrets)


def _shown(given: dict[str, Any], hosts: list[str], ports: list[str], name: str) -> str:
    places = [
        f"{host or 'localhost'}{f':{port}' if port else ''}"
        for host, port in zip(hosts, ports if len(ports) > 1 else ports * len(hosts), strict=True)
    ]
    user = f"{given['user']}@" if given.get("user") else ""
    return f"postgresql://{user}{','.join(places)}/{name}"

"""Who may ask for a page: the names under which it is asked for, logins, and what a request must bring to change
anything.

A person on this machine logs in by a link that works once. It stands in a file that only its owner can read, and a
fresh one takes its place when it was used: a lost cookie locks nobody out. Elsewhere people have names and passwords.
A login is a random cookie; the store keeps its hash, so logins outlive a restart, and a log-out ends one everywhere.
It is bound to the password that it came by: a changed password ends it.
"""

from __future__ import annotations

import hmac
import json
import os
import secrets
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from aiohttp import web
from msgspec import Struct, field

from adapters.web.platform import OWNER, WebSettings
from adapters.web.shares import Shares
from gateway.domain.adapter import LOGIN_NOTE, Notebook
from gateway.domain.reading import Recent
from gateway.domain.settings import is_loopback
from gateway.runtime.clock import Clock
from gateway.runtime.errors import AdapterError
from gateway.runtime.structs import replace

LOOK: Final = "legato-look"  # a cookie
LOOKS: Final = ("light", "dark")
DAYS: Final = 30  # for which a login holds
_DAY: Final = 86_400.0
_MOST_FAILURES: Final = 5  # by one name or from one address, before each further one doubles the wait
_FIRST_WAIT: Final = 30.0  # seconds
_LAST_WAIT: Final = 3_600.0
_LAST_WAIT_OF_A_NAME: Final = 60.0  # anybody can fail under another's name
_MOST_REMEMBERED: Final = 10_000


class Login(Struct, frozen=True, kw_only=True):
    """Who asks. `csrf` must come with every form; another page cannot know it. `bound`: a hash of the password,
    keyed by the cookie, so that it tells nothing to whoever reads the store. `look`: what this browser asked for."""

    person: str
    cookie: str
    until: float  # seconds since the epoch
    bound: str = ""
    look: str = ""

    @property
    def csrf(self) -> str:
        """Return the token of this login's forms."""
        return hmac.digest(self.cookie.encode(), b"form", "sha256").hex()[:40]


class Lockout(Struct, kw_only=True):
    """Counts failures by name and by address. After five the next attempts are refused unread, each time for longer."""

    clock: Clock
    # How many, and until when to wait.
    _failures: Recent[str, tuple[int, float]] = field(default_factory=lambda: Recent(_MOST_REMEMBERED))

    def wait(self, *whom: str) -> float:
        """Seconds until another attempt of these is read; 0.0: now."""
        now = self.clock.monotonic()
        return max(0.0, *(self._failures.get(each, (0, 0.0))[1] - now for each in whom))

    def failed(self, *whom: str) -> None:
        """Count a failure."""
        for each in whom:
            count = self._failures.get(each, (0, 0.0))[0] + 1
            longest = _LAST_WAIT_OF_A_NAME if each.startswith("as ") else _LAST_WAIT
            doubled = _FIRST_WAIT * 2.0 ** min(count - _MOST_FAILURES, 20)
            wait = min(longest, doubled) if count >= _MOST_FAILURES else 0.0
            self._failures[each] = (count, self.clock.monotonic() + wait)

    def succeeded(self, *whom: str) -> None:
        """Forget the failures of these."""
        for each in whom:
            self._failures.pop(each, None)


class Guard:
    """Judges requests. `file`: where the link of the owner stands; None: the page is not on this machine alone."""

    def __init__(self, settings: WebSettings, clock: Clock, file: Path | None) -> None:
        self._settings = settings
        self._clock = clock
        self._file = file if is_loopback(settings.host) else None
        self._logins: dict[str, Login] = {}  # by the hash of their cookie
        self._key = ""  # of the present link
        self.lockout = Lockout(clock=clock)
        self.shares = Shares(clock, self._is_somebody)
        self._notebook: Notebook | None = None
        self._at = ""  # scheme, host and port of this machine's own address
        self._origins: dict[str, str] = {}  # the addresses of this page as browsers write them, and the host of each

    def open(self, at: str) -> None:
        """The page is at this address: make a link. Raises AdapterError."""
        self._at = at
        own = ["{0.scheme}://{0.netloc}".format(urlsplit(self._settings.url.lower()))] if self._settings.url else []
        if is_loopback(self._settings.host):
            port = at.rpartition(":")[2]
            own += [*(f"http://{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]")), at]
        self._origins = {each: urlsplit(each).netloc for each in own}
        self._renew_link()

    def take_up(self, settings: WebSettings) -> None:
        """Let these people in from now on, and end the logins of those who are gone or have another password."""
        before = self._settings.people
        self._settings = self._settings.model_copy(update={"people": settings.people})
        for hashed, login in [*self._logins.items()]:
            if before.get(login.person) != settings.people.get(login.person):
                del self._logins[hashed]

    async def begin(self, notebook: Notebook | None) -> None:
        """Read the logins that hold. Raises StoreUnavailable."""
        self._notebook = notebook
        now, gone = self._clock.now(), dict[str, str | None]()
        for name, text in (await notebook.read() if notebook is not None else {}).items():
            facts = json.loads(text) if name.startswith(LOGIN_NOTE) else {}
            if facts.get("until", 0.0) > now and self._is_somebody(facts["person"]):
                login = Login(person=facts["person"], cookie="", until=facts["until"], bound=facts.get("bound", ""))
                self._logins[name.removeprefix(LOGIN_NOTE)] = login
            elif facts:
                gone[name] = None
        if gone and notebook is not None:
            await notebook.write(gone)
        await self.shares.begin(notebook)

    async def refresh(self) -> None:
        """Forget the logins that a shell ended. Raises StoreUnavailable."""
        if self._notebook is not None and (known := list(self._logins)):
            kept = await self._notebook.read()
            for hashed in known:
                if f"{LOGIN_NOTE}{hashed}" not in kept:
                    self._logins.pop(hashed, None)

    @property
    def address(self) -> str:
        """Return the address that people type."""
        return (self._settings.url or self._at).rstrip("/")

    @property
    def link(self) -> str:
        """The address that logs the owner in, once; "" if there is none."""
        return f"{self._at}/login?key={self._key}" if self._key else ""

    @property
    def has_passwords(self) -> bool:
        """Whether people can log in by a name."""
        return bool(self._settings.people)

    @property
    def secure(self) -> bool:
        """Whether people come by https."""
        return (self._settings.url or "").startswith("https://")

    @property
    def cookie_name(self) -> str:
        """Return the cookie's name; with https a browser takes one of this name from this host alone."""
        return "__Host-legato" if self.secure else f"legato-{self._at.rpartition(':')[2]}"

    # -- requests -----------------------------------------------------------------------------------

    def remote(self, request: web.BaseRequest) -> str:
        """The address that a request comes from. A proxy on this machine, or the named one, tells the person's own;
        otherwise one stranger's wrong passwords would hold up everybody."""
        nearest = request.remote or ""
        proxy = self._settings.proxy
        if self._settings.url and (nearest == proxy or (proxy is None and is_loopback(nearest))):
            return request.headers.get("X-Forwarded-For", "").rpartition(",")[2].strip()[:64] or nearest
        return nearest

    def knows_host(self, request: web.BaseRequest) -> bool:
        """Whether the page is asked for under one of its own names: another name may also lead to this machine."""
        hosts = request.headers.getall("Host", [])
        return len(hosts) == 1 and hosts[0].lower() in self._origins.values()

    def is_own(self, request: web.BaseRequest) -> bool:
        """Whether one of our pages made this request, as far as its head tells."""
        origin = request.headers.get("Origin")
        if origin is not None:
            return self._origins.get(origin) == request.headers.get("Host", "").lower()
        return request.headers.get("Sec-Fetch-Site", "same-origin") in ("same-origin", "none")

    def login_of(self, request: web.BaseRequest) -> Login | None:
        """The login that a request's cookie proves."""
        cookie = request.cookies.get(self.cookie_name, "")
        login = self._logins.get(_hash(cookie)) if cookie else None
        if login is None or login.until <= self._clock.now() or not self._is_somebody(login.person):
            return None
        if not hmac.compare_digest(login.bound, self._bound(login.person, cookie)):
            return None
        look = request.cookies.get(LOOK, "")
        return replace(login, cookie=cookie, look=look if look in LOOKS else "")

    def holds(self, login: Login) -> bool:
        """Whether a login that a cookie proved has not ended since."""
        known = self._logins.get(_hash(login.cookie))
        return known is not None and known.until > self._clock.now()

    def _bound(self, name: str, cookie: str) -> str:
        """What binds a login to the password in force; the owner has none."""
        if (person := self._settings.people.get(name)) is None:
            return ""
        key, password = cookie.encode(errors="surrogateescape"), person.password.get_secret_value().encode()
        return hmac.digest(key, password, "sha256").hex()

    def _is_somebody(self, person: str) -> bool:
        return person in self._settings.people or (person == OWNER and self._file is not None)

    # -- logins -------------------------------------------------------------------------------------

    async def by_link(self, key: str) -> Login | None:
        """Log the owner in, once for each link. Failures are not counted: nobody guesses a key, but any page that the
        owner visits can ask for this address, and would lock them out. Raises StoreUnavailable, AdapterError."""
        if not (self._key and hmac.compare_digest(key.encode(errors="replace"), self._key.encode())):
            return None
        used, self._key = self._key, ""  # before the store is waited for: a second request comes too late
        try:
            login = await self._opened(OWNER)
        finally:
            self._key = used
        self._renew_link()
        return login

    async def by_password(self, name: str, password: str, remote: str) -> Login | None:
        """Log a person in. Raises StoreUnavailable."""
        person = self._settings.people.get(name)
        right = "" if person is None else person.password.get_secret_value()  # a name that nobody has takes as long
        same = hmac.compare_digest(sha256(password.encode()).digest(), sha256(right.encode()).digest())
        if person is None or not same:
            self.lockout.failed(f"at {remote}", f"as {name}")
            return None
        self.lockout.succeeded(f"at {remote}", f"as {name}")
        return await self._opened(name)

    async def log_out(self, login: Login, *, everywhere: bool = False) -> None:
        """End a login, or all of its person. Raises StoreUnavailable."""
        mine = [hashed for hashed, each in self._logins.items() if each.person == login.person]
        ended = mine if everywhere else [_hash(login.cookie)]
        await self._write({f"{LOGIN_NOTE}{hashed}": None for hashed in ended})
        for hashed in ended:
            self._logins.pop(hashed, None)

    async def _opened(self, person: str) -> Login:
        cookie, until = secrets.token_urlsafe(32), self._clock.now() + DAYS * _DAY
        login = Login(person=person, cookie=cookie, until=until, bound=self._bound(person, cookie))
        hashed, facts = _hash(cookie), {"person": person, "until": until, "bound": login.bound}
        await self._write({f"{LOGIN_NOTE}{hashed}": json.dumps(facts)})
        self._logins[hashed] = replace(login, cookie="")
        return login

    async def _write(self, changes: Mapping[str, str | None]) -> None:
        if self._notebook is not None:
            await self._notebook.write(changes)

    def _renew_link(self) -> None:
        """Write a fresh link into its file. Raises AdapterError."""
        if self._file is None:
            return
        self._key = secrets.token_urlsafe(24)
        partial = self._file.with_name(f".{self._file.name}")
        try:
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with suppress(FileNotFoundError):
                partial.unlink()
            descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
                stream.write(f"{self.link}\n")
            partial.replace(self._file)
        except OSError as error:
            raise AdapterError(f"{self._file} cannot be written: {error.strerror}") from error


def _hash(cookie: str) -> str:
    return sha256(cookie.encode(errors="surrogateescape")).hexdigest()

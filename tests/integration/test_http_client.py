"""The shared HTTP client, against a real socket."""

from aiohttp import web

from gateway.providers.http import http_client


async def test_what_one_call_was_told_to_remember_is_not_sent_with_the_next() -> None:
    sent: list[str | None] = []

    async def answer(request: web.Request) -> web.Response:
        sent.append(request.headers.get("Cookie"))
        response = web.Response(text="hello")
        response.set_cookie("visitor", "somebody")
        return response

    app = web.Application()
    app.router.add_post("/", answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    async with http_client() as client:
        for _ in range(2):
            await client.post(f"http://127.0.0.1:{runner.addresses[0][1]}/")
    await runner.cleanup()
    assert sent == [None, None]

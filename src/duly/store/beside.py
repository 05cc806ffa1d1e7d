"""A store for threads beside one for an event loop: for what is done by plain calls, as talking to a receiver."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from duly.store.protocol import AsyncStore, Store


def store_beside(store: AsyncStore) -> Store:
    """The same ledger, to be closed by whoever asked for it. A store that is typed by an engine has to be open."""
    kept: AsyncStore = getattr(store, "ledger", store)
    url: str | None = getattr(kept, "url", None)
    if url is not None:
        from duly.store.postgres import PostgresStore

        return PostgresStore(url)
    from duly.store.sqlite import SqliteStore

    return SqliteStore(kept.path)

"""A bank for each story."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.work.bank import Bank


@pytest.fixture
def bank(tmp_path: Path) -> Bank:
    """An account with nothing on it, and a ledger beside it, on the morning of 2026-09-15."""
    return Bank(tmp_path / "bank.db")

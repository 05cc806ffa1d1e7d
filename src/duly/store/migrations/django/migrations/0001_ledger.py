"""The ledger's tables."""

from duly.store.migrations.django.step import migration

Migration = migration(1)

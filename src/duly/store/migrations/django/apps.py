"""How Django knows the app."""

from django.apps import AppConfig


class DulyConfig(AppConfig):
    """The ledger, under the label `duly`."""

    name = "duly.store.migrations.django"
    label = "duly"
    verbose_name = "duly: the ledger of scheduled runs"

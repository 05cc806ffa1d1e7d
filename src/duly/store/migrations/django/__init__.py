"""The ledger's migrations as a Django app, for projects that migrate with `manage.py migrate`.

    INSTALLED_APPS += ["duly.store.migrations.django"]

It has no models. Each of its migrations applies the step of the same number to a connection on SQLite or PostgreSQL and puts
it on the ledger's own record, so that `duly db migrate` finds nothing to do; a step that is on record already is not applied
again.
"""

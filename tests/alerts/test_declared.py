"""Who is told, as a file says it: `[alerts]`, and `on_late` of a job."""

from __future__ import annotations

from pathlib import Path

import pytest

from duly.errors import ConfigurationInvalid
from duly.ledger.alerts import KINDS
from duly.times import MINUTE, SECOND
from duly.work.configuration import Layers

OPS = '[destinations.ops]\nkind = "http"\nurl = "https://hooks.example/duly"\n'
POST = '[destinations.post]\nkind = "smtp"\nurl = "smtp://mail.example"\nfrom = "duly@example.com"\nto = "ops@example.com"\n'
SECRET = "5ecret"


def layers(tmp_path: Path, *texts: str) -> Layers:
    files = [tmp_path / f"{number}" / "duly.toml" for number in range(len(texts))]
    for file, text in zip(files, texts, strict=True):
        file.parent.mkdir()
        file.write_text(text)
    return Layers([str(file) for file in files])


def test_what_goes_without_saying(tmp_path: Path) -> None:
    found = layers(tmp_path, OPS + '[alerts]\nto = "ops"\n')

    alerting = found.alerts()

    assert (alerting.to, alerting.kinds, alerting.every, alerting.on_late) == (("ops",), KINDS, MINUTE, {})
    assert found.alerts_every() == MINUTE


def test_all_that_may_be_said(tmp_path: Path) -> None:
    text = OPS + POST + '[alerts]\nto = ["ops", "post"]\nkinds = ["late", "stuck"]\nevery = "10s"\n'
    found = layers(tmp_path, text)

    alerting = found.alerts()

    assert (alerting.to, alerting.kinds, alerting.every) == (("ops", "post"), ("late", "stuck"), 10 * SECOND)
    assert list(alerting.mail) == ["post"]


def test_without_a_word_of_it_nobody_looks(tmp_path: Path) -> None:
    assert layers(tmp_path, OPS).alerts_every() is None


def test_on_late_is_a_destination_that_every_relay_knows(tmp_path: Path) -> None:
    found = layers(
        tmp_path, '[jobs.close]\non_late = "https://hooks.example/late"\n[jobs.rates]\non_late = ["./page.sh"]\n'
    )

    routes = found.destinations()

    assert {name: route.make().kind for name, route in routes.items()} == {
        "on_late.close": "http",
        "on_late.rates": "command",
    }
    assert [route.make().remembers for route in routes.values()] == [None, None]
    assert found.alerts().on_late == {"close": "on_late.close", "rates": "on_late.rates"}
    assert found.alerts_every() == MINUTE


def test_one_that_is_declared_under_its_name_is_taken_instead(tmp_path: Path) -> None:
    own = '[destinations."on_late.close"]\nkind = "http"\nurl = "https://other.example"\nremembers = "never"\n'
    found = layers(tmp_path, f'{own}[jobs.close]\non_late = "https://hooks.example/late"\n')

    assert found.destinations()["on_late.close"].make().remembers == 0


def test_the_nearest_table_of_a_job_counts(tmp_path: Path) -> None:
    found = layers(
        tmp_path, '[jobs.close]\ncommand = ["true"]\n', '[jobs.close]\non_late = "https://hooks.example/late"\n'
    )

    assert found.alerts_every() is None
    assert found.destination("on_late.close") is None


def test_a_mistake_in_another_job_is_that_ones_trouble(tmp_path: Path) -> None:
    found = layers(tmp_path, '[jobs.wrong]\nperiod = 7\n[jobs.close]\non_late = "https://hooks.example/late"\n')

    assert found.alerts().on_late == {"close": "on_late.close"}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            '[alerts]\nto = "osp"\n',
            "[alerts] to: no destination 'osp' is declared as [destinations.osp]; did you mean ops?",
        ),
        ('[alerts]\nto = "ops"\nkinds = ["lat"]\n', "kinds: 'lat' is none of late, failed, "),
        ('[alerts]\nto = "ops"\nevery = 60\n', 'every: 60 has no unit; write every = "60s"'),
        ('[alerts]\ntoo = "ops"\n', "has no key 'too'; did you mean to?"),
        ('[jobs.close]\non_late = "./page.sh"\n', 'on_late = ["./page-somebody.sh"]'),
        (f'[jobs.close]\non_late = "ftp://{SECRET}"\n', "on_late: it takes a URL of http or https"),
        (f'[jobs.close]\non_late = "https://{SECRET}/a b"\n', "on_late: it takes a URL of http or https"),
        ("[jobs.close]\non_late = []\n", "on_late: it is a list of words"),
    ],
)
def test_a_mistake_names_its_key_and_what_to_write(text: str, says: str, tmp_path: Path) -> None:
    found = layers(tmp_path, OPS + text)

    with pytest.raises(ConfigurationInvalid) as raised:
        found.alerts()

    assert says in str(raised.value)
    assert SECRET not in str(raised.value)
    assert (raised.value.next_step or "").startswith("duly jobs check ")

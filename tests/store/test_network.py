"""Network file systems, whose locks SQLite cannot trust, are told by the table of mounts (proc(5), mountinfo)."""

from __future__ import annotations

import pytest

from duly.store.sqlite import network_file_system

MOUNTS = r"""22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
23 22 0:21 / /proc rw,nosuid shared:2 - proc proc rw
40 22 0:50 / /mnt/nfs rw,relatime shared:20 - nfs4 server:/export rw,vers=4.2
41 40 8:2 / /mnt/nfs/scratch rw,relatime shared:21 - xfs /dev/sdb1 rw
42 22 0:51 / /mnt/share rw,relatime - cifs //server/share rw
43 22 0:52 / /home/ada/remote\040disk rw,nosuid,nodev - fuse.sshfs ada@host:/ rw,user_id=0
44 22 0:53 / /mnt/back\134slash rw master:3 propagate_from:2 - nfs server:/b rw
45 22 0:54 / /mnt/tab\011here rw - ceph mon:/ rw
46 22 8:1 /sub /mnt/bind rw,relatime shared:1 - ext4 /dev/sda1 rw
47 22 0:55 / /run/user rw - tmpfs tmpfs rw
48 22 0:56 / /mnt/over rw - ext4 /dev/sdc1 rw
49 48 0:57 / /mnt/over rw - nfs server:/over rw
a line of something else
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/mnt/nfs/jobs.db", "nfs4"),
        ("/mnt/nfs/deep/er/jobs.db", "nfs4"),
        ("/mnt/nfs", "nfs4"),
        ("/mnt/share/jobs.db", "cifs"),
        ("/home/ada/remote disk/jobs.db", "fuse.sshfs"),
        ("/mnt/back\\slash/jobs.db", "nfs"),
        ("/mnt/tab\there/jobs.db", "ceph"),
        ("/mnt/over/jobs.db", "nfs"),  # mounted over a local disk: the later one is seen
    ],
)
def test_a_network_file_system_is_known_by_its_type(path: str, kind: str) -> None:
    assert network_file_system(MOUNTS, path) == kind


@pytest.mark.parametrize(
    "path",
    [
        "/var/lib/jobs.db",
        "/mnt/nfs/scratch/jobs.db",  # a local disk mounted inside
        "/mnt/nfs-not/jobs.db",  # only its name begins alike
        "/mnt/bind/jobs.db",
        "/run/user/jobs.db",
        "/home/ada/remote/jobs.db",
    ],
)
def test_a_local_file_system_is_none(path: str) -> None:
    assert network_file_system(MOUNTS, path) is None


def test_no_table_says_nothing() -> None:
    assert network_file_system("", "/mnt/nfs/jobs.db") is None

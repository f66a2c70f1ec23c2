"""A copy for others names neither this machine nor its people: in texts, inside what is packed, in free pages."""

import json
import re
import socket
import sqlite3
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

import fake_footprints
from fake_campaign import write
from tare.host.facts import identity
from tare.store import open_store, read_store, shared_copy
from tare.store.redact import Redactor

HOST, USER = "weighbridge", "aldous"
SECRETS = {
    HOST, USER, "203.0.113.77", "10.11.12.13", "fd00:1234::5:77", "52:54:00:aa:bb:cc", "PF0XYZ12",
    "3d1219c7c4c5404aaa1f6d2a48adfda4", "0b55a1f2-5c0e-4f6e-9d0c-2d3f1c9a7e11", "unheard-of.example", "stranger",
}  # fmt: skip
#: As iperf3, ssh, lsblk and tare's own errors have them.
TEXT = f"""{{"system_info": "Linux {HOST} 6.1.0-38-amd64 #1 SMP x86_64", "local_host": "10.11.12.13", "bytes": 1234567}}
ssh: connect to host 203.0.113.77 port 22: Connection refused; {USER}@unheard-of.example: Permission denied
inet6 fd00:1234::5:77 link/ether 52:54:00:aa:bb:cc "serial": "PF0XYZ12" 3d1219c7c4c5404aaa1f6d2a48adfda4
boot 0b55a1f2-5c0e-4f6e-9d0c-2d3f1c9a7e11 in /home/stranger/tare
at 12:34:56, took 12.5 ms, sysbench 1.0.20, {HOST}: done"""


def unpacked(file):
    """Texts of all tables, and what is packed in them."""
    db = sqlite3.connect(file)
    texts = "\n".join(db.iterdump()).encode()
    packed = [row[0] for table in ("output", "attachment") for row in db.execute(f"SELECT zstd FROM {table}")]
    db.close()
    return b"\n".join([texts, *(zstandard.ZstdDecompressor().stream_reader(data).read() for data in packed)])


def all_bytes(file):
    """The same, and the file as it is on disk."""
    return file.read_bytes() + unpacked(file)


def shared(file, copy, **names):
    with copy.open("wb") as out:
        return shared_copy.share(file, out, **names)


@pytest.fixture
def personal(tmp_path):
    """A campaign whose every place for a text names somebody."""
    file = write(tmp_path / "night.tare")
    with open_store(file) as store:
        store.add_attachment("console", TEXT.encode())
        store.add_event("warning", TEXT)
    db = sqlite3.connect(file)
    packed = zstandard.ZstdCompressor().compress(TEXT.encode() + b"\xff\x00")
    [trial] = db.execute("SELECT min(id) FROM trial").fetchone()
    db.execute("INSERT INTO output VALUES (?, 'stderr', 10, 0, ?)", (trial, packed))
    db.execute("UPDATE segment SET boot = '0b55a1f2-5c0e-4f6e-9d0c-2d3f1c9a7e11'")
    db.execute("UPDATE trial SET status = 'failed', reason = ? WHERE id = ?", (TEXT, trial))
    db.commit()
    db.close()
    return file


def test_nothing_that_names_somebody_is_in_the_copy(personal, tmp_path):
    before = all_bytes(personal)
    assert all(secret.encode() in before for secret in SECRETS)
    done = shared(personal, tmp_path / "shared.tare", hosts={HOST}, users={USER})
    after = all_bytes(tmp_path / "shared.tare")
    assert [secret for secret in SECRETS if secret.encode() in after] == []
    assert set(done.removed) == {"host", "user", "address", "hardware-address", "serial", "id"}
    assert done.outputs >= 2
    assert b"took 12.5 ms, sysbench 1.0.20" in after
    assert b"12:34:56" in after


def test_the_copy_is_a_campaign_with_the_same_figures(personal, tmp_path):
    shared(personal, tmp_path / "shared.tare", hosts={HOST}, users={USER})
    with read_store(personal) as store, read_store(tmp_path / "shared.tare") as copy:
        assert copy.record == store.record
        assert copy.samples().equals(store.samples())
        assert copy.trials().drop("reason").equals(store.trials().drop("reason"))


def test_a_user_who_is_called_as_a_platform_is_nobody(personal, tmp_path):
    """Packages make such users: libvirt-qemu."""
    shared(personal, tmp_path / "shared.tare", hosts={HOST}, users={USER, "docker", "kata"})
    with read_store(personal) as store, read_store(tmp_path / "shared.tare") as copy:
        assert copy.record == store.record


def test_whom_the_record_names_is_not_in_the_copy(personal, tmp_path):
    """Neither the machine that the load came from, nor a cluster's node."""
    client = {
        "client": "ssh:ottokar@loads.example:2222", "name": "balance-7", "address": "192.0.2.9", "called": "192.0.2.1",
        "kernel": "6.1", "model": "a processor", "cpus": 2, "memory_bytes": 1 << 30,
    }  # fmt: skip
    with sqlite3.connect(personal) as db:
        [(text,)] = db.execute("SELECT value FROM fact WHERE name = 'record'").fetchall()
        record = json.loads(text) | {"client": client}
        record["platforms"][-1]["details"]["node"] = "pool-a-31"
        record["left_out"].append({"platform": "libvirt:qemu+ssh://steelyard.example/system", "reason": "it is not on"})
        record["left_out"].append({"platform": "libvirt:qemu+ssh://[", "reason": "it is no URI"})
        record["left_out"].append({"platform": "podman-rootless:ottilie", "reason": "no such user"})
        db.execute("UPDATE fact SET value = ? WHERE name = 'record'", (json.dumps(record),))
        db.execute("INSERT INTO event (at, level, text) VALUES (0, 'warning', 'balance-7 and pool-a-31 are far away')")
    db.close()
    names = [b"ottokar", b"loads.example", b"balance-7", b"192.0.2.9", b"pool-a-31", b"steelyard", b"ottilie"]
    assert all(name in all_bytes(personal) for name in names)
    shared(personal, tmp_path / "shared.tare", hosts=set(), users=set())
    after = all_bytes(tmp_path / "shared.tare")
    assert [name for name in names if name in after] == []
    with read_store(tmp_path / "shared.tare") as copy:
        assert copy.record.client.cpus == 2


def test_this_machine_is_not_named_either(personal, tmp_path):
    name = socket.gethostname()
    with open_store(personal) as store:
        store.add_event("warning", f"it was {name} that did it")
    shared(personal, tmp_path / "shared.tare", hosts=identity.hosts(), users=identity.users())
    word = rb"(?<![\w-])" + re.escape(name).encode() + rb"(?![\w-])"
    assert re.search(word, unpacked(personal))
    assert re.search(word, unpacked(tmp_path / "shared.tare")) is None


def test_a_stand_in_is_the_same_throughout_and_another_for_each():
    redactor = Redactor(hosts={HOST, f"{HOST}.example"}, users={USER})
    assert redactor.text(f"{HOST} {HOST}.example {USER}@{HOST} 192.0.2.1 192.0.2.2 192.0.2.1") == (
        "host-1 host-2 user-1@host-1 address-1 address-2 address-1"
    )
    assert redactor.text("ssh:bob@" + HOST) == "ssh:user-2@host-1"


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        (f"{HOST.upper()}.corp.example.com: up", "host-1: up"),
        (f"{HOST}.corp.example.com, {HOST.upper()}", "host-1, host-2"),
        (f"{HOST.capitalize()}.Corp.Example.COM", "host-1"),
        ("DB-7.corp.example.com db-7 DB-7 Db-7", "host-1 host-2 host-2 host-2"),
        ("https://alice:s3cret@proxy.example/x", "https://user-1:password-1@host-1/x"),
        ("http://alice:p!ss%40w/o?@192.0.2.7:3128", "http://alice:p!ss%40w/o?@address-1:3128"),
        ("http://alice:p!ss@wo%3Frd@192.0.2.7:3128/", "http://user-1:password-1@host-1:3128/"),
        ("ftp://alice@[2001:db8::7]/", "ftp://user-1@[address-1]/"),
        ("git+ssh://alice:@proxy.example and https://plain.example/a@b", "git+ssh://user-1:@host-1 and"),
        ("0B55A1F25C0E4F6E9D0C2D3F1C9A7E11", "id-1"),
    ],
)
def test_names_are_known_in_capitals_with_a_domain_and_in_addresses(text, redacted):
    assert Redactor(hosts={HOST, "db-7"}, users={USER}).text(text).startswith(redacted)


def test_a_host_whose_name_is_a_word_takes_no_other_words_with_it():
    text = "Debian GNU/Linux 12, a VM, debian.service"
    assert Redactor(hosts={"debian", "vm"}).text(text) == "Debian GNU/Linux 12, a VM, host-1.service"
    assert Redactor(hosts={"debian", "vm"}).text("VM.corp.example.com") == "host-1"


@pytest.mark.thorough
@given(st.text(max_size=60), st.from_regex(r"[a-z]{4,12}", fullmatch=True))
def test_no_known_name_stays_in_any_text(text, name):
    redactor = Redactor(hosts={name})
    for form in (name, name.upper(), f"{name.title()}.corp.example.com"):
        left = redactor.text(f"{text} {form} {text}")
        assert f" {form} " not in left


def test_what_names_nobody_stays():
    text = "127.0.0.1 ::1 0.0.0.0 255.255.255.0 root@localhost 12:34:56 1.2.3 std::vector weighbridges " + "a" * 64
    assert Redactor(hosts={HOST}).text(text) == text


def test_two_names_with_one_stand_in_are_added_up_in_a_copy(tmp_path):
    file = write(tmp_path / "night.tare")
    counted = fake_footprints.footprint({f"{HOST}.service": 3, "read": 2, f"{HOST.upper()}.service": 4, HOST: 1})
    with open_store(file) as store:
        store.add_footprint(counted)
    shared(file, tmp_path / "shared.tare", hosts={HOST, HOST.upper()}, users=())
    with read_store(tmp_path / "shared.tare") as copy:
        [footprint] = copy.footprints()
    assert list(footprint.hits.items()) == [("host-1.service", 7), ("read", 2), ("host-1", 1)]


def test_footprints_and_surfaces_are_the_same_in_a_copy(tmp_path):
    file = Path(__file__).parent / "released" / "footprints-1.tare"
    shared(file, tmp_path / "shared.tare", hosts={HOST}, users={USER})
    with read_store(file) as store, read_store(tmp_path / "shared.tare") as copy:
        assert list(copy.footprints()) == list(store.footprints())
        assert [surface.calls for surface in copy.surfaces()] == [surface.calls for surface in store.surfaces()]

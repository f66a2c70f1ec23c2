"""What a sandbox left in its data folder must not hang or end the campaign."""

import os

from tare.host import roots


def test_links_and_pipes_of_a_sandbox_are_passed_over(tmp_path):
    (tmp_path / "file").write_bytes(b"x" * 4096)
    (tmp_path / "link").symlink_to("/nowhere")
    (tmp_path / "loop").symlink_to("loop")
    os.mkfifo(tmp_path / "pipe")
    roots.drop_page_cache(tmp_path)
    assert (tmp_path / "file").read_bytes() == b"x" * 4096

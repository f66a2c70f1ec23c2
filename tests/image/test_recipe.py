import pytest

from tare.errors import ImageError
from tare.image import image_recipe

TEXT = b"""
suite = "bookworm"
variant = "minbase"
epoch = 1
left_out = []
removed = ["b", "a"]
[pinned]
sysbench = "1"
fio = "2"
[recorded]
packages = ["procps"]
[files]
"etc/hostname" = "x"
"""


def test_what_it_says():
    read = image_recipe.parse(TEXT)
    assert read.include == "fio=2,sysbench=1,procps"
    assert read.removed == ("a", "b")
    assert read.files == (("etc/hostname", "x"),)


def test_every_letter_counts_for_the_hash():
    assert image_recipe.parse(TEXT).hash != image_recipe.parse(TEXT.replace(b"epoch = 1", b"epoch = 2")).hash
    assert image_recipe.parse(TEXT).hash == image_recipe.parse(TEXT).hash


@pytest.mark.parametrize(
    "text",
    [
        b"\xff",
        b"suite =",
        b"",
        TEXT.replace(b'variant = "minbase"', b""),
        TEXT.replace(b"epoch = 1", b'epoch = "soon"'),
        TEXT.replace(b'["b", "a"]', b'"a"'),
        TEXT.replace(b"left_out = []", b"left_out = 7"),
        TEXT.replace(b"[pinned]", b"pinned = 3\n[other]"),
    ],
)
def test_a_recipe_that_cannot_be_read(text):
    with pytest.raises(ImageError, match="recipe cannot be read"):
        image_recipe.parse(text)


def test_the_recipe_that_comes_with_tare_pins_what_measures():
    assert {"sysbench", "iperf3", "fio"} <= {name for name, _ in image_recipe.load().pinned}

"""Where an image lies in a daemon's store."""

from tare.platforms.parts.engines.layers import layers_of, stored


def _image(*layers, size=5_000_000):
    data = {"UpperDir": str(layers[0]), "WorkDir": "/w"}
    if layers[1:]:
        data["LowerDir"] = ":".join(map(str, layers[1:]))
    return {"Size": size, "GraphDriver": {"Name": "overlay2", "Data": data}}


def test_layers_take_what_their_files_take(tmp_path):
    upper, lower = tmp_path / "upper", tmp_path / "lower"
    for folder in (upper, lower):
        folder.mkdir()
        (folder / "file").write_bytes(b"x" * 100_000)
    form = stored("tare:0", _image(upper, lower), ["runc"])
    assert form.files == (upper, lower)
    assert 200_000 <= form.disk_bytes < 400_000
    assert (form.form, form.programs) == ("image tare:0", ("runc",))


def test_a_store_that_is_elsewhere_or_of_another_kind_is_believed_in_the_size(tmp_path):
    for image in (
        _image(tmp_path / "gone"),
        {"Size": 5_000_000, "GraphDriver": None},
        {"Size": 5_000_000},
        {"Size": 5_000_000, "GraphDriver": {"Name": "btrfs", "Data": None}},
    ):
        assert layers_of(image) == ()
        form = stored("tare:0", image, [])
        assert (form.disk_bytes, form.files) == (5_000_000, ())

"""Programs of chance that the kernel would take, for the evaluator to be tried on."""

from hypothesis import strategies as st
from plain_cbpf import Op

#: Few, so that branches meet again what others have tested.
NUMBERS = st.sampled_from([0, 1, 2, 3, 4, 8, 16, 0x7E020000, 0x80000000, 0xFFFFFFFF])
OFFSETS = st.sampled_from(range(0, 64, 4))
ALU = [0x04, 0x14, 0x24, 0x34, 0x44, 0x54, 0x64, 0x74, 0xA4]
JUMPS = [0x15, 0x25, 0x35, 0x45]
ALL_JUMPS = [*JUMPS, *(code | 8 for code in JUMPS)]


@st.composite
def programs(
    draw, tests=(*JUMPS, *(code | 8 for code in JUMPS)), calculates=True, masks=True, constants=NUMBERS, offsets=OFFSETS
):
    """Programs that the kernel would take, but for scratch words that nothing was stored in."""
    length = draw(st.integers(1, 24))
    program = []
    for at in range(length):
        left = length - at - 1  # instructions that follow, the last return not among them
        kinds = ["load", "load", "load", "jump", "jump", "return"] + ["and"] * masks
        kinds += ["alu", "alu by x", "ldx", "store", "misc", "neg", "ja"] if calculates else []
        match draw(st.sampled_from(kinds)):
            case "load":
                program.append(Op(0x20, k=draw(offsets)))
            case "jump":
                span = st.integers(0, min(left, 255))
                program.append(Op(draw(st.sampled_from(tests)), draw(span), draw(span), draw(constants)))
            case "and":
                program.append(Op(0x54, k=draw(constants)))
            case "return":
                program.append(Op(0x06, k=at))
            case "alu":
                code = draw(st.sampled_from(ALU))
                k = draw(constants)
                program.append(Op(code, k=k % 32 if code in (0x64, 0x74) else k or 1 if code == 0x34 else k))
            case "alu by x":
                program.append(Op(draw(st.sampled_from(ALU)) | 8))
            case "ldx":
                code, k = draw(
                    st.sampled_from([(0x01, None), (0x61, 15), (0x81, 0), (0x60, 15), (0x80, 0), (0x00, None)])
                )
                program.append(Op(code, k=draw(constants) if k is None else draw(st.integers(0, k))))
            case "store":
                program.append(Op(draw(st.sampled_from([0x02, 0x03])), k=draw(st.integers(0, 15))))
            case "misc":
                program.append(Op(draw(st.sampled_from([0x07, 0x87]))))
            case "neg":
                program.append(Op(0x84))
            case "ja":
                program.append(Op(0x05, k=draw(st.integers(0, left))))
    last = Op(0x16) if calculates and draw(st.booleans()) else Op(0x06, k=length)
    return [*program, last]

"""make_wheel.py OUT MEMBER LATE METADATA ARCH...: a wheel whose MEMBER has fatbins for ARCH in its beginning and,
behind 40 MiB, one for LATE (0: none)."""
import random
import struct
import sys
import zipfile


def fatbin(archs):
    entries = b""
    for arch in archs:
        head = struct.pack("<HHIQIIHHIIIQQQ", 2, 0x101, 64, 8192, 0, 0, 1, 7, arch, 0, 0, 1, 0, 0)
        entries += head + bytes(8192)
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(entries)) + entries


out, member, late, metadata, *archs = sys.argv[1:]
elf = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HH", 3, 62) + bytes(44)
elf += b"".join(fatbin(map(int, archs)) for _ in range(40)) + random.Random(1).randbytes(40 << 20)
if late != "0":
    elf += fatbin([int(late)])
with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as wheel:
    wheel.writestr(member, elf)
    wheel.writestr("a/none.txt", random.Random(2).randbytes(1 << 20))
    wheel.write("fuzz/seeds/elf/64gnu", "a/small.so")
    wheel.writestr("a-1.dist-info/METADATA", metadata.replace("\\n", "\n"))

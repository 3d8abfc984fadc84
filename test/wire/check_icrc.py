#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Calculate the ICRC of each packet of a file of pcap= and compare it with that of the packet."""

import struct
import sys
import zlib

LINKTYPE_RAW = 101


def masked(packet):
    """The packet without its ICRC, with its variant fields as ones (IBTA annex A17.3.2)."""
    data = bytearray(packet[:-4])
    if data[0] >> 4 == 4:
        udp = 20
        variant = [1, 8, 10, 11]  # type of service, time to live, checksum
    else:
        udp = 40
        data[0] |= 0x0f  # traffic class and flow label
        variant = [1, 2, 3, 7]  # and the hop limit
    for at in variant + [udp + 6, udp + 7, udp + 8 + 4]:  # UDP checksum, reserved byte of the BTH
        data[at] = 0xff
    return bytes(8 * [0xff]) + bytes(data)


def packets(data):
    magic, linktype = struct.unpack('=I16xI', data[:24])
    assert (magic, linktype) == (0xa1b2c3d4, LINKTYPE_RAW)
    at = 24
    while at < len(data):
        size, original = struct.unpack('=8xII', data[at:at + 16])
        assert size == original
        at += 16 + size
        yield data[at - size:at]
    assert at == len(data)


def main():
    total = bad = 0
    with open(sys.argv[1], 'rb') as file:
        for packet in packets(file.read()):
            total += 1
            icrc, = struct.unpack('<I', packet[-4:])
            bad += zlib.crc32(masked(packet)) != icrc
    print('%d packets, %d with another ICRC' % (total, bad))
    return bad != 0 or total == 0


if __name__ == '__main__':
    sys.exit(main())

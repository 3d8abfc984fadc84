#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks that the pictures of doc/overview.md show the code.

Folders: those of devtools/rooms.py, each above all that it includes headers of. Path of a WRITE:
each function is defined in its file, and is named in the function that the picture shows as its
caller. After =>, it is the entry of a table of drivers/soft.
"""

import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGE = 'doc/overview.md'
DRIVER = 'drivers/soft/'
TABLE = DRIVER + 'rsoft_dev.c'

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(ROOT, 'devtools'))

import ctext  # noqa: E402 (in that folder)
import rooms  # noqa: E402


def read(path):
    with open(os.path.join(ROOT, path), encoding='utf-8') as file:
        return file.read()


def picture(title):
    """Lines of the last picture of a section."""
    section = read(PAGE).partition('\n## %s\n' % title)[2].partition('\n## ')[0]
    return re.findall(r'^```text\n(.*?)^```', section, re.M | re.S)[-1].splitlines()


def wrong_folders():
    at = {}
    for number, line in enumerate(picture('Folders')):
        for name in re.split(r' {3,}', line)[0].split():
            if any(name == folder for folder, _ in rooms.FOLDERS):
                at[name] = number
    for folder, below in rooms.FOLDERS:
        if folder not in at:
            yield 'folder %s: not in the picture' % folder
            continue
        for other in below.split():
            if at.get(other, sys.maxsize) <= at[folder]:
                yield 'folder %s: not above %s, whose headers it includes' % (folder, other)


def body_of(path, name):
    """Text of a function; '' if the file does not define it."""
    text = read(path) if os.path.isfile(os.path.join(ROOT, path)) else ''
    lines = ctext.strip(text).split('\n')
    for found, line, length in ctext.functions(text):
        if found == name:
            return '\n'.join(lines[line - 1:line + length])
    return ''


def wrong_calls():
    callers, nb = [], 0  # indentation, name, body
    for line in picture('Path of a request'):
        found = re.match(r'(\s*(?:=> )?)(\w+)\(\) +(\S+)', line)
        if not found:
            yield 'path: not "function() file": %s' % line
            continue
        nb += 1
        indent, name, path = found.groups()
        path = path if path.startswith('lib/') else DRIVER + path
        body = body_of(path, name)
        if not body:
            yield 'path: %s() is not in %s' % (name, path)
        while callers and callers[-1][0] >= len(indent):
            callers.pop()
        if '=>' in indent:
            slot = callers[-1][1].removeprefix('rmem_')
            if not re.search(r'\.%s = %s\b' % (slot, name), read(TABLE)):
                yield 'path: %s() is not the entry %s in %s' % (name, slot, TABLE)
        elif callers and not re.search(r'\b%s\(' % name, callers[-1][2]):
            yield 'path: %s() does not call %s()' % (callers[-1][1], name)
        callers.append((len(indent), name, body))
    if nb < 10:
        yield 'path: %d functions, expected 10 at least' % nb


def main():
    wrong = list(wrong_folders()) + list(wrong_calls())
    for message in wrong:
        print('%s: %s' % (PAGE, message))
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())

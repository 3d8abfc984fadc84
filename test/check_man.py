#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The manual page of a program has the options, defaults and modes of its --help, and no others.

usage: check_man.py PAGE PROGRAM [ARGUMENT...]; the program prints its help
"""

import re
import subprocess
import sys


def of_help(text):
    """{option: text of its lines}, and the modes."""
    options, names, modes = {}, [], []
    for line in text.splitlines():
        match = re.match(r' {2}(-[\w-]+)(?: [A-Z_]+)?(?:, (--[\w-]+))?\b(.*)', line)
        if match:
            names = [name for name in match.group(1, 2) if name]
        elif not line.startswith(' '):
            names = []
        for name in names:
            options[name] = options.get(name, '') + ' ' + line.strip()
        mode = re.match(r' {2}(\w+) {2,}\S', line)
        if mode and not names:
            modes.append(mode[1])
    return options, modes


def of_page(text):
    """{option: text of its item}, and the tags of other items."""
    options, modes = {}, []
    for item in re.split(r'^\.It ', text, flags=re.M)[1:]:
        tag, _, body = item.partition('\n')
        if not tag.startswith('Fl '):
            modes.append(tag.split()[-1])
            continue
        for name in re.split(r' , ', re.match(r'Fl (\S+(?: , \S+)*)', tag)[1]):
            options['-' + name] = body
    return options, modes


def breaches(help_text, page_text):
    options, modes = of_help(help_text)
    described, items = of_page(page_text)
    if not options:
        yield 'no option in the help'
    for name in sorted(options.keys() - described.keys()):
        yield f'{name}: not in the page'
    for name in sorted(described.keys() - options.keys()):
        yield f'{name}: only in the page'
    for name in sorted(options.keys() & described.keys()):
        for value in re.findall(r'\(default (\w+)\)', options[name]):
            if value not in re.findall(r'\w+', described[name]):
                yield f'{name}: the default {value} is not in the page'
    for mode in modes:
        if mode not in items:
            yield f'mode {mode}: not in the page'


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__.strip())
    shown = subprocess.run(sys.argv[2:], stdout=subprocess.PIPE, text=True, check=False).stdout
    with open(sys.argv[1], encoding='utf-8') as file:
        found = list(breaches(shown, file.read()))
    for line in found:
        print(f'{sys.argv[1]}: {line}')
    sys.exit(1 if found else 0)


if __name__ == '__main__':
    main()

# SPDX-License-Identifier: BSD-3-Clause
"""Which file defines a function and which name it, for check-circles.py and check-externs.py.

Found by name, so a pointer to a function counts where it is taken, not where it is called.
"""

import os
import re

import ctext

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

_USED = re.compile(r'(?<!struct )(?<!enum )(?<!union )(?<![.>])\b[A-Za-z_]\w*\b')
_OBJECT = re.compile(r'^(?!extern\b|static\b|typedef\b|return\b)[A-Za-z_][\w *]*?\b(\w+)'
                     r'(?:\[[^\]\n]*\])*(?: __\w+(?:\([^)\n]*\))?)*(?: = | =$|;$)', re.M)
_DIRECTIVE = re.compile(r'^[ \t]*#(?:[^\n\\]|\\.|\\\n)*', re.M)


def sources(directory):
    """Paths of a directory's files, without it, and their text; with /* also those below."""
    top = os.path.join(ROOT, directory.removesuffix('/*'))
    for folder, folders, paths in os.walk(top):
        folders[:] = sorted(folders) if directory.endswith('/*') else []
        for path in sorted(paths):
            if path.endswith(('.c', '.h')):
                with open(os.path.join(folder, path), encoding='utf-8') as file:
                    code = ctext.strip(file.read())
                yield os.path.relpath(os.path.join(folder, path), top), code


def without_directives(code):
    return _DIRECTIVE.sub('', code)


def functions(path, code):
    """Names of functions that other files see; of a .c those that are not static."""
    lines = code.split('\n')
    for name, line, _ in ctext.functions(code):
        head = '\n'.join(lines[max(0, line - 8):line - 1])
        head = head[max(head.rfind('\n}'), head.rfind(';'), head.rfind('\n\n')) + 1:]
        is_macro = name.isupper()  # of a constructor or a test
        if not is_macro and (path.endswith('.h') or not re.search(r'\bstatic\b', head)):
            yield name


def defined(path, code):
    """Names that other files see: functions, and objects of a .c."""
    yield from functions(path, code)
    if path.endswith('.c'):
        yield from (found.group(1) for found in _OBJECT.finditer(code))


def used(path, code):
    """Names in the functions and initialisers of a file."""
    body = re.sub(r'(?<!\w)REAL\(\w+\)', '', code)  # ribv_libc.h: a function of libc
    if path.endswith('.h'):  # a declaration is no call
        body = '\n'.join(re.findall(r'^\{\n.*?^\}', code, re.M | re.S))
    return set(_USED.findall(body)) - _variables(body)


def macros(code):
    """Names in the directives of a file."""
    return set(re.findall(r'\w+', '\n'.join(_DIRECTIVE.findall(code))))


def pasted(code):
    """Starts of names that macros of a file paste together."""
    return set(re.findall(r'(\w+)##', code))


def _variables(body):
    """Names that are one of parameters and variables there, as dirfd is, and of no call."""
    declared = set(re.findall(r'\b(?:int|char \*|bool|uint\d+_t|size_t) ?(\w+)\b *[,;)=]', body))
    return {name for name in declared
            if re.search(r'(?:&|\b)%s\(|&%s\b' % (name, name), body) is None}

# SPDX-License-Identifier: BSD-3-Clause
"""Reads C sources just well enough for check-style.py: comments, functions, declarations.

Relies on the layout clang-format enforces: a function's braces stand in column 0 and nothing
else's do.
"""

import re

_COMMENT_OR_STRING = re.compile(
    r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
_BLANK = re.compile(r'[^\n]')


def strip(text):
    """Blank comments and the insides of literals, keeping every line and column."""
    def blank(match):
        token = match.group()
        if token[0] in '"\'':
            return token[0] + ' ' * (len(token) - 2) + token[0]
        return _BLANK.sub(' ', token)
    return _COMMENT_OR_STRING.sub(blank, text)


def prose(text):
    """Blank all but comments and literals, keeping every line and column."""
    kept, last = [], 0
    for match in _COMMENT_OR_STRING.finditer(text):
        kept += [_BLANK.sub(' ', text[last:match.start()]), match.group()]
        last = match.end()
    return ''.join(kept + [_BLANK.sub(' ', text[last:])])


def functions(text):
    """Yield (name, line, lines in the body) for each function defined in text."""
    name, start, head = None, 0, []
    for number, line in enumerate(strip(text).split('\n'), 1):
        if line.startswith('{'):
            name, start = _name(' '.join(head)), number
        elif line.startswith('}'):
            if name:
                yield name, start, number - start - 1
            name, head = None, []
        elif name is None:
            ends = not line.strip() or line.startswith('#') or line.rstrip().endswith(';')
            head = [] if ends else head + [line]


def declarations(text):
    """Yield (name, kind, head, doc) for each function or object a header declares.

    kind is 'function', 'inline' or 'object'; head is what stands before the name; doc is the
    Doxygen comment right before the declaration, or ''.
    """
    code = strip(_drop_preprocessor(text))
    for begin, end in _statements(code):
        statement = code[begin:end]
        begin += len(statement) - len(statement.lstrip())
        head = re.sub(r'__rte_\w+(\s*\([^()]*\))?|__attribute__\s*\(\(.*?\)\)', ' ', statement)
        head = re.sub(r'\{.*', '', head, flags=re.S)
        doc = _comment_before(text, begin)
        if re.match(r'\s*(typedef|struct\s+\w+\s*;|enum\s*$)', head):
            continue
        found = re.match(r'\s*(\w[\w\s*]*[\s*])(\w+)\s*\(', head)
        if found:
            is_inline = re.search(r'\bstatic\b', found.group(1))
            yield found.group(2), 'inline' if is_inline else 'function', found.group(1), doc
            continue
        found = re.match(r'\s*extern\s+(.*[\s*])(\w+)\s*(\[[^;]*\])?\s*;?\s*$', head, re.S)
        if found:
            yield found.group(2), 'object', found.group(1), doc


def _name(head):
    head = re.sub(r'__rte_\w+(\s*\([^()]*\))?|__attribute__\s*\(\(.*?\)\)', ' ', head)
    found = re.search(r'TEST\w*\(\w+, (\w+)', head) or re.search(r'(\w+)\s*\(', head)
    return found.group(1) if found else None


def _drop_preprocessor(text):
    """Blank directives and what only C++ sees, keeping offsets."""
    def blank(match):
        return _BLANK.sub(' ', match.group())
    text = re.sub(r'^#ifdef __cplusplus\n.*?^#endif[^\n]*', blank, text, flags=re.S | re.M)
    return re.sub(r'^[ \t]*#(?:[^\n\\]|\\.|\\\n)*', blank, text, flags=re.M)


def _statements(code):
    """Yield (begin, end) of each top-level statement or function body."""
    depth, begin, brace = 0, 0, 0
    for offset, char in enumerate(code):
        if char == '{':
            if depth == 0:
                brace = offset
            depth += 1
        elif char == '}':
            depth -= 1
            if depth == 0 and re.search(r'\)[\s\w]*$', code[begin:brace]):
                yield begin, offset + 1
                begin = offset + 1
        elif char == ';' and depth == 0:
            yield begin, offset
            begin = offset + 1


def _comment_before(text, begin):
    before = text[:begin].rstrip()
    if not before.endswith('*/'):
        return ''
    start = before.rfind('/*')
    return before[start:] if before.startswith('/**', start) else ''

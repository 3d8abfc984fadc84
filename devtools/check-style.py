#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The rules of the tree that need no build: one function per rule, one message per breach."""

import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True

import api  # noqa: E402 (in this folder)
import ctext  # noqa: E402 (in this folder)
import glossary  # noqa: E402
import programs  # noqa: E402
import rooms  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MAX_FILE_LINES = 800
MAX_FUNCTION_LINES = 50
MAX_PAGE_LINES = 400
MAX_COMMENT_COLUMNS = 100
MAX_FIRST_LINE = 80
LICENCE = 'SPDX-License-Identifier: BSD-3-Clause'

# 'path:function': why it may be longer than MAX_FUNCTION_LINES.
LONG_FUNCTIONS = {
}

# What a library must leave to the program.
BANNED_CALLS = ('printf', 'vprintf', 'puts', 'putchar', 'perror', 'sprintf', 'vsprintf', 'strcpy',
                'strcat', 'gets', 'atoi', 'atol', 'atoll', 'atof', 'exit', '_exit', '_Exit',
                'abort', 'assert', 'rte_exit', 'rte_panic', '__rte_panic')
BANNED_STREAMS = ('stdout', 'stderr')

# Paths and hosts that exist on one machine only (split, so that this file passes its own rule).
MACHINE_PATHS = re.compile(r'(?<![\w.$}/-])/(?:wor' r'k|roo' r't|hom' r'e/\w+)/')
MACHINE_HOSTS = re.compile(r'//[\w.-]*(?:mirror|proxy|artifactory|nexus|registry|deb\.|pypi|ftp\.)'
                           r'[\w-]*\.[\w.-]+', re.I)


class Tree:
    """The project's files and their text."""

    def __init__(self):
        listing = subprocess.run(
            ['bash', '-c', '. "$0" && tree_files "*"', os.path.join(ROOT, 'devtools', 'common.sh')],
            stdout=subprocess.PIPE, check=True)
        self.paths = [path for path in listing.stdout.decode().split('\0') if path]
        self.broken = []
        self._texts = {}
        for path in self.paths:
            with open(os.path.join(ROOT, path), 'rb') as file:
                raw = file.read()
            try:
                self._texts[path] = raw.decode('utf-8')
            except UnicodeDecodeError:
                self.broken.append(path)
                self._texts[path] = raw.decode('latin-1')

    def text(self, path):
        return self._texts[path]

    def named(self, *patterns):
        """Paths that match one of the regular expressions as a whole."""
        return [path for path in self.paths if any(re.fullmatch(p, path) for p in patterns)]

    def c_files(self, *tops):
        under = '(?:' + '|'.join(tops) + ')/' if tops else ''
        return self.named(under + r'.*\.[ch]')

    def scripts(self):
        return [path for path in self.paths if self._texts[path].startswith('#!')]

    def headers(self, library=r'[^/]+'):
        """The installed ones."""
        return [path for path in self.named(r'lib/%s/.*\.h' % library)
                if not path.endswith('_priv.h')]


def file_is_short(tree):
    for path in set(tree.c_files() + tree.scripts() + tree.named(r'.*\.(py|sh)')):
        lines = tree.text(path).count('\n')
        if lines > MAX_FILE_LINES:
            yield path, 1, 'has %d lines, the limit is %d' % (lines, MAX_FILE_LINES)


def page_is_short(tree):
    for path in tree.named(r'doc/[^/]+\.md'):
        lines = tree.text(path).count('\n')
        if lines > MAX_PAGE_LINES:
            yield path, 1, 'has %d lines, the limit is %d: move sections to a page of their own' % (
                lines, MAX_PAGE_LINES)


def function_is_short(tree):
    unused = set(LONG_FUNCTIONS)
    for path in tree.c_files():
        for name, line, lines in ctext.functions(tree.text(path)):
            if lines <= MAX_FUNCTION_LINES:
                continue
            key = '%s:%s' % (path, name)
            if key in LONG_FUNCTIONS:
                unused.discard(key)
            else:
                yield path, line, '%s() has %d lines, the limit is %d' % (
                    name, lines, MAX_FUNCTION_LINES)
    for key in sorted(unused):
        yield 'devtools/check-style.py', 1, 'LONG_FUNCTIONS names %s, which is not long' % key


def comment_is_narrow(tree):
    for path in tree.c_files():
        for number, line in enumerate(tree.text(path).split('\n'), 1):
            columns = len(line.expandtabs(8))
            is_comment = '/*' in line or line.lstrip().startswith('* ')
            if is_comment and '"' not in line and columns > MAX_COMMENT_COLUMNS:
                yield path, number, 'has a comment of %d columns, the limit is %d' % (
                    columns, MAX_COMMENT_COLUMNS)


def file_name_is_plain(tree):
    """A name of other characters is the output of a command, redirected by mistake."""
    for path in tree.paths:
        if not re.fullmatch(r'[\w.+/-]+', path):
            yield path, 1, 'has a name with other characters than letters, digits and _.+-'


def licence_is_on_top(tree):
    sources = tree.c_files() + tree.scripts() + tree.named(
        r'.*\.(py|sh)', r'(.*/)?meson\.build', r'meson[._]options(\.txt)?')
    for path in set(sources):
        lines = tree.text(path).split('\n', 2)
        line = 1 if lines[0].startswith('#!') else 0
        if len(lines) <= line or LICENCE not in lines[line]:
            yield path, line + 1, 'does not say "%s" here' % LICENCE


def library_leaves_it_to_the_program(tree):
    calls = re.compile(r'\b(%s)\s*\(' % '|'.join(BANNED_CALLS))
    streams = re.compile(r'\b(%s)\b' % '|'.join(BANNED_STREAMS))
    for path in tree.c_files('lib', 'drivers', 'ibcm'):
        for number, line in enumerate(ctext.strip(tree.text(path)).split('\n'), 1):
            for found in calls.finditer(line):
                yield path, number, 'calls %s(): a library must not' % found.group(1)
            for found in streams.finditer(line):
                yield path, number, 'uses %s: a library must not' % found.group(1)


def guard_is_named_after_the_file(tree):
    for path in tree.named(r'.*\.h'):
        guard = re.sub(r'\W', '_', os.path.basename(path)).upper()
        code = ctext.strip(tree.text(path))
        if not re.match(r'\s*#ifndef %s\n#define %s\n' % (guard, guard), code):
            yield path, 1, 'does not open with the guard %s' % guard


def declarations_are_in_extern_c(tree):
    for path in tree.headers():
        text = tree.text(path)
        block = re.search(r'^#ifdef __cplusplus\nextern "C" \{\n#endif\n(.*?)'
                          r'^#ifdef __cplusplus\n\}\n#endif\n', text, re.S | re.M)
        inside = block.group(1) if block else ''
        outside = text.replace(inside, '', 1) if inside else text
        for name, _, _, _ in ctext.declarations(outside):
            yield path, 1, '%s is declared outside extern "C"' % name
        if re.search(r'^#\s*include', inside, re.M):
            yield path, 1, 'includes a header inside extern "C"'


def private_headers_stay_in_their_library(tree):
    """Neither a driver nor another library includes a private header of a library."""
    owner = {os.path.basename(path): path.split('/')[1]
             for path in tree.named(r'lib/[^/]+/.*_priv\.h')}
    for path in tree.c_files('lib', 'drivers'):
        library = path.split('/')[1] if path.startswith('lib/') else None
        for number, line in enumerate(tree.text(path).split('\n'), 1):
            found = re.match(r'#\s*include [<"](?:.*/)?(\w+_priv\.h)[>"]', line)
            if found and owner.get(found.group(1), library) != library:
                yield path, number, 'includes %s, which is private to lib/%s' % (
                    found.group(1), owner[found.group(1)])


def version_is_the_projects(tree):
    """RMEM_VERSION is the version of meson.build."""
    project = re.search(r"version: '(\d+)\.(\d+)\.(\d+)'", tree.text('meson.build')).groups()
    path = 'lib/rmem/rmem_version.h'
    header = re.search(r'#define RMEM_VERSION RMEM_VERSION_NUM\((\d+), (\d+), (\d+)\)',
                       tree.text(path)).groups()
    if header != project:
        yield path, 1, 'is %s, meson.build is %s' % ('.'.join(header), '.'.join(project))


def _version_map(text):
    """Names the map exports, and whether it hides the rest."""
    text = re.sub(r'/\*.*?\*/|#[^\n]*', '', text, flags=re.S)
    names, section = [], 'global'
    for token in re.findall(r'[\w*?]+\s*[:;]', text):
        word = token[:-1].strip()
        if token.endswith(':'):
            section = word
        elif section == 'global':
            names.append(word)
    return names, bool(re.search(r'local\s*:\s*\*\s*;', text))


def map_equals_headers(tree):
    for path in tree.named(r'lib/[^/]+/version\.map'):
        exported, hides_rest = _version_map(tree.text(path))
        if not hides_rest:
            yield path, 1, 'does not say "local: *;"'
        declared = {}
        for header in tree.headers(path.split('/')[1]):
            for name, kind, _, _ in ctext.declarations(tree.text(header)):
                if kind != 'inline':
                    declared[name] = header
        for name in sorted(set(exported) - set(declared)):
            yield path, 1, 'exports %s, which no installed header declares' % name
        for name in sorted(set(declared) - set(exported)):
            yield declared[name], 1, 'declares %s, which %s does not export' % (name, path)
        for name in exported:
            if not name.startswith('rmem_'):
                yield path, 1, 'exports %s, which does not begin with rmem_' % name
            if exported.count(name) > 1:
                yield path, 1, 'exports %s twice' % name


def macro_is_defined_once(tree):
    for path in tree.headers():
        seen = {}
        for number, line in enumerate(tree.text(path).split('\n'), 1):
            found = re.match(r'#define (\w+)', line)
            if re.match(r'#\s*(else|elif)\b', line):
                seen = {}
            elif found and found.group(1) in seen:
                yield path, number, 'defines %s, which line %d defines' % (
                    found.group(1), seen[found.group(1)])
            elif found:
                seen[found.group(1)] = number


def bits_are_in_order(tree):
    """Macros of one bit each rise within a set; a set is what shares two words and begins at 0."""
    bit = re.compile(r'^#define (\w+?_[A-Z]+)_(\w+) \(UINT\d+_C\(1\) << (\d+)\)', re.M)
    for path in tree.headers():
        text = tree.text(path)
        prefix, last = None, 0
        for found in bit.finditer(text):
            number = int(found.group(3))
            if found.group(1) == prefix and 0 < number <= last:
                yield path, text.count('\n', 0, found.start()) + 1, \
                    '%s_%s is bit %d, and the one above is bit %d' % (
                        prefix, found.group(2), number, last)
            prefix, last = found.group(1), number


def library_has_a_map(tree):
    libraries = {path.split('/')[1] for path in tree.c_files('lib')}
    for library in sorted(libraries):
        if 'lib/%s/version.map' % library not in tree.paths:
            yield 'lib/%s' % library, 1, 'has no version.map'


def every_export_is_tested(tree):
    tests = '\n'.join(ctext.strip(tree.text(path)) for path in tree.c_files('test'))
    headers = '\n'.join(ctext.strip(tree.text(path)) for path in tree.headers())
    objects = {name for header in tree.headers()
               for name, kind, _, _ in ctext.declarations(tree.text(header)) if kind == 'object'}
    macros = re.findall(r'^#define (\w+)\(((?:[^\\\n]|\\.|\\\n)*)', headers, re.M)
    words = set(re.findall(r'\w+', tests))
    called = set(re.findall(r'\b(\w+)\s*\(', tests))
    for path in tree.named(r'lib/[^/]+/version\.map'):
        for name in _version_map(tree.text(path))[0]:
            word = r'\b%s\b' % name
            if name in objects:
                # What only the inline functions touch is tested through them.
                is_used = name in words or len(re.findall(word, headers)) > 1
            else:
                is_used = name in called or any(
                    macro in called for macro, body in macros if re.search(word, body))
            if not is_used:
                yield path, 1, 'exports %s, which nothing in test/ calls' % name


def errors_are_documented(tree):
    for path in tree.headers():
        for name, kind, head, doc in ctext.declarations(tree.text(path)):
            if kind == 'object':
                continue
            if not doc:
                yield path, 1, '%s() has no Doxygen comment right before it' % name
                continue
            if not re.search(r'\bint\s*$', head) or re.search(r'unsigned\s+int\s*$', head):
                continue
            result = re.search(r'[@\\]returns?\b(.*)', doc, re.S)
            if not result:
                yield path, 1, '%s() has no @return' % name
            elif not re.search(r"-E[A-Z]+|[Cc]an(?:not|'t) fail|[Nn]ever fails", result.group(1)):
                yield path, 1, '%s() names no -E... in @return, nor says that it cannot fail' % name


def whitespace_is_clean(tree):
    for path in tree.broken:
        if not path.endswith('.gz'):
            yield path, 1, 'is not UTF-8'
    spaces_only = set(tree.named(r'.*\.(py|md|yml|yaml)', r'(.*/)?meson\.build',
                                 r'meson[._]options(\.txt)?'))
    for path in tree.paths:
        text = tree.text(path)
        if '\0' in text:
            continue
        if text and not text.endswith('\n'):
            yield path, text.count('\n') + 1, 'does not end with a newline'
        if text.endswith('\n\n'):
            yield path, text.count('\n'), 'ends with an empty line'
        for number, line in enumerate(text.split('\n'), 1):
            if line != line.rstrip():
                yield path, number, 'has blanks or a carriage return at the end of the line'
            if '\t' in line and path in spaces_only:
                yield path, number, 'has a tab where .editorconfig wants spaces'


def nothing_of_one_machine(tree):
    for path in tree.paths:
        for number, line in enumerate(tree.text(path).split('\n'), 1):
            for pattern, what in ((MACHINE_PATHS, 'path'), (MACHINE_HOSTS, 'host')):
                found = pattern.search(line)
                if found:
                    yield path, number, 'names a %s of one machine: %s' % (what, found.group())


def _without_code(text):
    """Markdown with fenced blocks and inline code blanked."""
    def blank(match):
        return re.sub(r'[^\n]', ' ', match.group())
    text = re.sub(r'^(```|~~~).*?^\1', blank, text, flags=re.S | re.M)
    return re.sub(r'`[^`\n]+`', blank, text)


def _anchors(text):
    """The anchors the headings of a Markdown text give."""
    text = re.sub(r'^```.*?^```', '', text, flags=re.S | re.M)
    slugs = set()
    for heading in re.findall(r'^#+\s+(.*?)\s*#*$', text, re.M):
        slug = re.sub(r'[^\w\- ]', '', heading.lower()).replace(' ', '-')
        candidate, count = slug, 0
        while candidate in slugs:
            count += 1
            candidate = '%s-%d' % (slug, count)
        slugs.add(candidate)
    return slugs


def result_is_ret(tree):
    """A variable for the result of a call is named ret; rc is the transport, a member."""
    for path in tree.c_files():
        if path.startswith(('drivers/soft/wire/', 'test/wire/')):
            continue
        for number, line in enumerate(ctext.strip(tree.text(path)).split('\n'), 1):
            if re.search(r'(?<!->)(?<!\.)(?<!uint32_t )\brc\b', line):
                yield path, number, 'names a variable rc: write ret'


def static_has_no_prefix(tree):
    """A function with a prefix is one that other files call."""
    for path in tree.named(r'(?:lib|drivers|ibcm)/.*\.c'):
        found = re.finditer(r'^static [^;=(]*\n((?:ibcm|rmem|rsoft|rverbs)_\w+)\(', tree.text(path), re.M)
        for match in found:
            line = tree.text(path).count('\n', 0, match.start(1)) + 1
            yield path, line, 'static %s() has a prefix' % match.group(1)


def bool_is_named_is_or_has(tree):
    """Fields, variables and parameters."""
    name = re.compile(r'\bbool \**(?:const )?(?!(?:\w+_)?(?:is|has)_)(\w+)(?=\s*(?:[;,=)[]|:\s*\d))')
    for path in tree.c_files():
        for number, line in enumerate(ctext.strip(tree.text(path)).split('\n'), 1):
            for found in name.finditer(line):
                yield path, number, 'bool %s: name it is_ or has_' % found.group(1)


def assertion_is_static_assert(tree):
    for path in tree.c_files():
        for number, line in enumerate(ctext.strip(tree.text(path)).split('\n'), 1):
            found = re.search(r'\b(_Static_assert|RTE_BUILD_BUG_ON)\b', line)
            if found:
                yield path, number, '%s: write static_assert' % found.group(1)


def unused_parameter_is_marked_once(tree):
    for path in tree.c_files():
        for number, line in enumerate(tree.text(path).split('\n'), 1):
            found = re.match(r'\s*\(void\)(\w+);', line)
            if found:
                yield path, number, '(void)%s: write RTE_SET_USED()' % found.group(1)


def include_shows_what_is_installed(tree):
    """<> for installed headers, quotes for the others of the tree."""
    installed = {os.path.basename(path) for path in tree.headers()}
    others = {os.path.basename(path) for path in tree.named(r'.*\.h')} - installed
    for path in tree.c_files():
        for number, line in enumerate(tree.text(path).split('\n'), 1):
            found = re.match(r'#\s*include ([<"])(?:.*/)?([\w.]+)[>"]', line)
            if found and found.group(2) in (installed if found.group(1) == '"' else others):
                yield path, number, 'includes %s: write %s' % (
                    found.group(2), '<>, it is installed' if found.group(1) == '"' else 'quotes')


def library_is_no_driver(tree):
    """The libraries above the class include rmem_obj_ref.h, not the interface of drivers."""
    for path in tree.c_files('lib'):
        if path.startswith('lib/rmem/'):
            continue
        for number, line in enumerate(tree.text(path).split('\n'), 1):
            found = re.match(r'#\s*include [<"](rmem_driver\w*\.h)', line)
            if found:
                yield path, number, 'includes %s: write <rmem_obj_ref.h>' % found.group(1)


def log_line_names_object_and_failure(tree):
    """<object>: <what failed>: <value> (<limit>): a colon follows the object."""
    levels = '(?:ERR|WARNING|NOTICE)'
    call = re.compile(r'\b(?:\w+_LOG\(%s|\w+_FAIL\([^";]*?|RMEM_LOG_LINE\(%s, \w+, "[^"]*")'
                      r',\s*("[^"]*"(?:\s*(?:PRI\w+|"[^"]*"))*)' % (levels, levels))
    for path in tree.c_files('lib', 'drivers'):
        code = re.sub(r'(?m)^#define (?:[^\n]*\\\n)*[^\n]*', lambda m: re.sub(r'[^\n]', ' ', m.group()),
                      ctext.strip(tree.text(path)))
        for found in call.finditer(code):
            if ': ' not in tree.text(path)[found.start(1):found.end(1)]:
                line = tree.text(path).count('\n', 0, found.start(1)) + 1
                yield path, line, 'logs no line like "<object>: <what failed>: <value> (<limit>)"'


def op_is_assigned(tree):
    """Each driver has each operation, or NULL, for which the class has a function."""
    path = 'lib/rmem/rmem_driver.h'
    body = re.search(r'^struct rmem_dev_ops \{(.*?)^\};', ctext.strip(tree.text(path)), re.S | re.M)
    ops = re.findall(r'\b(\w+);', body.group(1))
    none = 'lib/rmem/rmem_ops_none.c'
    drivers = [name for name in tree.named(r'drivers/.*\.c')
               if re.search(r'^const struct rmem_driver \w+ = \{', tree.text(name), re.M)]
    for op in ops:
        # A driver without the first three is not registered; dm, mp and xrc are tables, or NULL.
        is_needed = op in ('dev_close', 'dev_create', 'dev_info_get', 'dm', 'mp', 'xrc')
        if not is_needed and not re.search(r'FILL(_OWN)?\(ops, %s\)' % op, tree.text(none)):
            yield none, 1, 'has nothing for %s' % op
        for name in drivers:
            if not re.search(r'^\s*\.%s = &?\w+,' % op, tree.text(name), re.M):
                yield name, 1, 'does not assign %s: a function or NULL' % op


def op_table_is_complete(tree):
    """A table of another kind assigns each operation too, NULL where it is optional."""
    ops = {}
    for path in tree.c_files():
        code = ctext.strip(tree.text(path))
        for found in re.finditer(r'^struct (\w+_ops) \{\n(.*?)^\}', code, re.S | re.M):
            ops[found.group(1)] = re.findall(r'\(\*(\w+)\)\(', found.group(2))
    for path in tree.c_files():
        code = ctext.strip(tree.text(path))
        for found in re.finditer(r'\bconst struct (\w+) \w+ = (\{\n.*?^\});', code, re.S | re.M):
            for op in ops.get(found.group(1), ()):
                if not re.search(r'\.%s = ' % op, found.group(2)):
                    yield path, code.count('\n', 0, found.start()) + 1, \
                        'does not assign %s: a function or NULL' % op


def op_is_never_null(tree):
    """A caller does not test an operation: its table has a function that does nothing."""
    for path in tree.c_files('lib', 'drivers', 'dropin', 'env', 'ibcm'):
        for number, line in enumerate(ctext.strip(tree.text(path)).split('\n'), 1):
            found = re.search(r'->ops->(\w+) [!=]= NULL', line)
            if found:
                yield path, number, 'tests %s for NULL: give each table a function' % found.group(1)


def links_resolve(tree):
    pages = tree.named(r'.*\.md')
    link = re.compile(r'\[[^\]\n]*\]\(\s*<?([^)\s>]+)>?[^)]*\)|^\[[^\]\n]+\]:\s*(\S+)', re.M)
    for path in pages:
        text = _without_code(tree.text(path))
        for found in link.finditer(text):
            target = found.group(1) or found.group(2)
            line = text.count('\n', 0, found.start()) + 1
            if re.match(r'[a-z][a-z0-9+.-]*:', target):
                continue
            file, _, anchor = target.partition('#')
            where = os.path.normpath(os.path.join(os.path.dirname(path), file)) if file else path
            if not os.path.exists(os.path.join(ROOT, where)):
                yield path, line, 'links to %s, which does not exist' % target
            elif anchor and where in pages and anchor not in _anchors(tree.text(where)):
                yield path, line, 'links to %s: no such heading' % target


def first_line_is_short(tree):
    """The first line of a Doxygen comment is a description of its own."""
    for path in tree.headers():
        if not glossary.covered(path):
            continue
        text = tree.text(path)
        for found in re.finditer(r'/\*\*\n\s*\* ([^\n]+)', text):
            line = found.group(1)
            if len(line) > MAX_FIRST_LINE:
                yield path, text.count('\n', 0, found.end()) + 1, \
                    'has a first line of %d characters, the limit is %d' % (
                        len(line), MAX_FIRST_LINE)


def test_names_are_of_the_field(tree):
    case = re.compile(r'\b(?:CONF_)?TEST(?:_WITH|_CALL)?\(\w+,\s*(\w+)')
    for path in tree.c_files('test'):
        text = tree.text(path)
        for found in case.finditer(text if glossary.covered(path) else ''):
            for words, instead in glossary.breaches(found.group(1).replace('_', ' ')):
                yield path, text.count('\n', 0, found.start()) + 1, \
                    '%s in %s: write %s' % (words, found.group(1), instead)


def words_are_of_the_field(tree):
    for path in tree.paths:
        if not glossary.covered(path):
            continue
        text = glossary.prose(path, tree.text(path))
        for number, line in enumerate(text.split('\n'), 1):
            for words, instead in glossary.breaches(line):
                yield path, number, '%s: write %s' % (words, instead)
    for top in glossary.COVERED:
        if not os.path.exists(os.path.join(ROOT, top)):
            yield 'devtools/glossary.py', 1, 'COVERED names %s, which does not exist' % top


def programs_page_is_current(tree):
    del tree
    for message in programs.breaches():
        yield programs.PAGE, 1, message


RULES = (
    assertion_is_static_assert,
    bits_are_in_order,
    bool_is_named_is_or_has,
    declarations_are_in_extern_c,
    errors_are_documented,
    every_export_is_tested,
    file_is_short,
    file_name_is_plain,
    first_line_is_short,
    rooms.folder_has_head,
    rooms.folder_includes_those_below,
    function_is_short,
    comment_is_narrow,
    guard_is_named_after_the_file,
    include_shows_what_is_installed,
    library_is_no_driver,
    library_has_a_map,
    library_leaves_it_to_the_program,
    licence_is_on_top,
    links_resolve,
    log_line_names_object_and_failure,
    macro_is_defined_once,
    map_equals_headers,
    nothing_of_one_machine,
    op_is_assigned,
    op_is_never_null,
    op_table_is_complete,
    page_is_short,
    private_headers_stay_in_their_library,
    programs_page_is_current,
    result_is_ret,
    static_has_no_prefix,
    version_is_the_projects,
    whitespace_is_clean,
    test_names_are_of_the_field,
    unused_parameter_is_marked_once,
    words_are_of_the_field,
) + api.RULES


def main():
    tree = Tree()
    breaches = 0
    for rule in RULES:
        for path, line, message in sorted(rule(tree)):
            print('%s:%d: %s [%s]' % (path, line, message, rule.__name__))
            breaches += 1
    print('check-style.py: %d rules, %d files, %d breaches' % (
        len(RULES), len(tree.paths), breaches))
    return 1 if breaches else 0


if __name__ == '__main__':
    sys.exit(main())

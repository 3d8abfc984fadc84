#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Manual pages of the public headers, from their Doxygen comments.

usage: man.py DIRECTORY [VERSION [DEPFILE]]

Writes to DIRECTORY one page of section 3 for each function, one for each header, named after it
(rmem_mr.h.3), with its types and macros, and a link to that page for each type and variable.
DEPFILE gets the names of the headers, for ninja.
"""

import datetime
import os
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
COLUMNS = 78
SECTION = '3'


def run_doxygen(out):
    """Write the XML of the comments, by the Doxyfile of the API pages."""
    with open(os.path.join(ROOT, 'doc/Doxyfile'), encoding='utf-8') as file:
        conf = file.read()
    # Warnings are for the API pages; as XML they differ.
    conf += f'''
        OUTPUT_DIRECTORY = "{out}"
        GENERATE_HTML = NO
        GENERATE_XML = YES
        XML_PROGRAMLISTING = NO
        WARN_AS_ERROR = NO
        WARNINGS = NO
        WARN_IF_UNDOCUMENTED = NO
        WARN_IF_DOC_ERROR = NO
        WARN_IF_INCOMPLETE_DOC = NO
        WARN_NO_PARAMDOC = NO
    '''
    subprocess.run(['doxygen', '-'], input=conf, text=True, cwd=ROOT, check=True,
                   stdout=subprocess.DEVNULL)
    return os.path.join(out, 'xml')


def plain(element):
    """The text of an element, in one line."""
    return ' '.join(''.join(element.itertext()).split()) if element is not None else ''


def escape(text):
    """Text for a line of a page, or for one quoted argument of a macro."""
    text = text.replace('\\', r'\e').replace('"', r'\(dq')
    return re.sub(r'(?<![\w)])-(?=\w)', r'\-', text)


def sentences(text):
    """Lines of a paragraph; each sentence starts one."""
    lines = []
    for sentence in re.split(r'(?<=[.?!])(?<!\.\.\.)(?<! [a-z]\.) (?=[A-Z(])', text):
        lines.append('')
        for word in sentence.split():
            function = re.fullmatch(r'(rmem_\w+)\(\)([.,:;)]*)', word)
            if function:
                lines += [' '.join(['.Xr', function[1], SECTION, *function[2]]), '']
            elif lines[-1] and len(lines[-1]) + 1 + len(word) > COLUMNS:
                lines.append(word)
            else:
                lines[-1] += f' {word}' if lines[-1] else word
    return [r'\&' + line if line[0] in ".'" and line[1:3] != 'Xr' else line
            for line in lines if line]


def paragraph(text):
    return sentences(escape(' '.join(text.split())))


def item_list(element, ordered):
    lines = ['.Bl -enum' if ordered else '.Bl -bullet']
    for item in element.findall('listitem'):
        lines += ['.It', *blocks(item)]
    return [*lines, '.El']


def blocks(element):
    """Lines of the paragraphs and lists of an element, without @param and @return."""
    lines = []
    for para in element.iter('para') if element.tag != 'listitem' else element.findall('para'):
        if element.tag != 'listitem' and not is_top(element, para):
            continue
        text = para.text or ''
        body = []
        for child in para:
            if child.tag in ('itemizedlist', 'orderedlist'):
                body += paragraph(text) + item_list(child, child.tag == 'orderedlist')
                text = ''
            elif child.tag in ('lsquo', 'rsquo'):
                text += "'"
            elif child.tag not in ('parameterlist', 'simplesect'):
                text += ''.join(child.itertext())
            text += child.tail or ''
        body += paragraph(text)
        if lines and body:
            lines.append('.Pp')
        lines += body
    return lines


def is_top(element, para):
    return any(child is para for child in element)


def description(member):
    return blocks(member.find('detaileddescription'))


def with_brief(member):
    """Brief and full description of a type, a member or a macro."""
    brief = paragraph(plain(member.find('briefdescription')))
    full = description(member)
    return brief + (['.Pp'] if brief and full else []) + full


def type_and_name(kind, name):
    return f'{kind}{name}' if kind.endswith('*') else f'{kind} {name}'


def declaration(member):
    """'uint64_t reserved[2]', of a field."""
    return type_and_name(plain(member.find('type')), member.findtext('name')) + (
        member.findtext('argsstring') or '')


class Function:
    """A function, and the lines of its page."""

    def __init__(self, member, header):
        self.name = member.findtext('name')
        self.member = member
        self.header = header
        self.brief = plain(member.find('briefdescription')).rstrip('.')

    def prototype(self):
        kind = re.sub(r'^(static )?(inline )?', '', plain(self.member.find('type')))
        lines = [f'.Ft "{escape(kind)}"', f'.Fo {self.name}']
        params = self.member.findall('param')
        for param in params:
            kind = plain(param.find('type'))
            text = type_and_name(kind, param.findtext('declname') or '').strip()
            lines.append(f'.Fa "{escape(text + (param.findtext("array") or ""))}"')
        if not params:
            lines.append('.Fa void')
        return [*lines, '.Fc']

    def parameters(self):
        items = []
        for item in self.member.iter('parameteritem'):
            names = ', '.join(plain(name) for name in item.iter('parametername'))
            items += [f'.It Fa {names}', *blocks(item.find('parameterdescription'))]
        return ['.Bl -tag -width Ds', *items, '.El'] if items else []

    def returned(self):
        """Lines of RETURN VALUES and of ERRORS."""
        values, errors = [], []
        for sect in self.member.iter('simplesect'):
            if sect.get('kind') != 'return':
                continue
            for para in sect.findall('para'):
                values += paragraph(para.text or '' if para.find('itemizedlist') is not None
                                    else ''.join(para.itertext()))
                for item in para.iter('listitem'):
                    text = plain(item)
                    match = re.match(r'(-E\w+(?: (?:or|and) -E\w+|, -E\w+)*): (.*)', text)
                    tag, rest = match.groups() if match else ('', text)
                    target = errors if match else values
                    if not match:
                        target += [*(['.Pp'] if target else []), *paragraph(rest)]
                        continue
                    target += [f'.It \\{tag}', *paragraph(rest[:1].upper() + rest[1:])]
        if values and errors:
            values[-1] = re.sub('^(.*), (?:otherwise|or)( .*)?:$', r'\1, or a negative errno\2.',
                                values[-1])
        return values, errors

    def page(self, known):
        values, errors = self.returned()
        body = description(self.member)
        lines = ['.Sh NAME', f'.Nm {self.name}',
                 f'.Nd {escape(self.brief[:1].lower() + self.brief[1:])}',
                 '.Sh LIBRARY', escape(self.header.library),
                 '.Sh SYNOPSIS', f'.In {self.header.name}', *self.prototype(),
                 '.Sh DESCRIPTION', *(body or paragraph(self.brief + '.')), *self.parameters()]
        if values:
            lines += ['.Sh RETURN VALUES', *values]
        if errors:
            lines += ['.Sh ERRORS', '.Bl -tag -width Er', *errors, '.El']
        named = set(re.findall(r'\b(rmem_\w+)\(', ' '.join(plain(part) for part in self.member)))
        return lines + see_also((named & known) - {self.name} | {self.header.name, 'rmem'})


def see_also(names):
    """The section SEE ALSO, sorted by section and name."""
    pages = sorted((SECTION if name != 'rmem' else '7', name) for name in names)
    return ['.Sh SEE ALSO', *(f'.Xr {name} {section}{" ," if i + 1 < len(pages) else ""}'
                              for i, (section, name) in enumerate(pages))]


class Header:
    """A public header, and the lines of its page."""

    def __init__(self, xml, compound):
        self.xml = xml
        self.name = compound.findtext('compoundname')
        path = compound.find('location').get('file')
        self.path = os.path.join(ROOT, path)
        self.library = 'lib' + path.split('lib/')[-1].split('/')[0]
        self.compound = compound
        members = [member for member in compound.iter('memberdef')]
        self.functions = [Function(member, self) for member in members
                          if member.get('kind') == 'function']
        self.enums = [member for member in members if member.get('kind') == 'enum']
        self.others = [member for member in members
                       if member.get('kind') in ('define', 'typedef', 'variable')]
        self.structs = [self.load(inner.get('refid')) for inner in compound.findall('innerclass')
                        if '@' not in inner.text and '::' not in inner.text]

    def load(self, refid):
        return ET.parse(os.path.join(self.xml, refid + '.xml')).getroot().find('compounddef')

    def linked(self):
        """Names of types and variables, whose links lead to this page."""
        names = [struct.findtext('compoundname') for struct in self.structs]
        names += [enum.findtext('name') for enum in self.enums]
        names += [member.findtext('name') for member in self.others
                  if member.get('kind') == 'variable']
        return filter(None, names)

    @staticmethod
    def fields(struct):
        """The fields of a structure; the source, if it has fields of types without a name."""
        members = list(struct.iter('memberdef'))
        if any('@' in plain(member.find('type')) for member in members):
            place = struct.find('location')
            with open(os.path.join(ROOT, place.get('bodyfile')), encoding='utf-8') as file:
                text = file.readlines()[int(place.get('bodystart')) - 1:int(place.get('bodyend'))]
            source = [escape(line.rstrip('\n')).replace('/**<', '/*').expandtabs(4)
                      for line in text]
            return ['.Bd -literal', *source, '.Ed']
        lines = []
        for member in members:
            lines += [f'.It Vt "{escape(declaration(member))}"', *with_brief(member)]
        return ['.Bl -tag -width Ds', *lines, '.El'] if lines else []

    def struct_lines(self, struct):
        return [f'.Ss {struct.get("kind")} {struct.findtext("compoundname")}',
                *with_brief(struct), *self.fields(struct)]

    @staticmethod
    def enum_lines(enum):
        lines = [f'.Ss enum {enum.findtext("name")}'.rstrip(), *with_brief(enum),
                 '.Bl -tag -width Ds']
        for value in enum.findall('enumvalue'):
            lines += [f'.It Dv {value.findtext("name")}', *with_brief(value)]
        return [*lines, '.El']

    def other_lines(self):
        lines = []
        for member in self.others:
            params = ', '.join(param.findtext('defname') or '' for param in member.findall('param'))
            name = member.findtext('name') + (f'({params})' if params else '')
            lines += [f'.It Dv "{name}"', *with_brief(member)]
        return ['.Ss Macros and types', '.Bl -tag -width Ds', *lines, '.El'] if lines else []

    def page(self):
        brief = plain(self.compound.find('briefdescription')).rstrip('.')
        lines = ['.Sh NAME', f'.Nm {self.name}',
                 f'.Nd {escape(brief[:1].lower() + brief[1:]) or self.library}',
                 '.Sh LIBRARY', self.library, '.Sh SYNOPSIS', f'.In {self.name}',
                 '.Sh DESCRIPTION', *(description(self.compound) or paragraph(brief + '.'))]
        if self.functions:
            lines += ['.Ss Functions', '.Bl -tag -width Ds']
            for function in self.functions:
                lines += [f'.It Xr {function.name} {SECTION}',
                          *paragraph(function.brief + '.')]
            lines.append('.El')
        for struct in self.structs:
            lines += self.struct_lines(struct)
        for enum in self.enums:
            lines += self.enum_lines(enum)
        return lines + self.other_lines() + see_also({'rmem'})


def headers(xml):
    index = ET.parse(os.path.join(xml, 'index.xml')).getroot()
    for entry in index.findall('compound'):
        if entry.get('kind') == 'file':
            root = ET.parse(os.path.join(xml, entry.get('refid') + '.xml')).getroot()
            yield Header(xml, root.find('compounddef'))


def pages(found, version):
    """{file name: text} of all pages."""
    stamp = int(os.environ.get('SOURCE_DATE_EPOCH', datetime.datetime.now().timestamp()))
    date = datetime.datetime.fromtimestamp(stamp, datetime.timezone.utc)
    date = f'{date:%B} {date.day}, {date.year}'
    known = {function.name for header in found for function in header.functions}
    text = {}

    def unlinked(match):
        return match[0] if match[1] in known else f'{match[1]}(){match[2].replace(" ", "")}'

    def add(name, lines):
        lines = [re.sub(r'^\.Xr (rmem_\w+) 3(.*)', unlinked, line) for line in lines]
        top = ['.\\" Generated by doc/man.py.', f'.Dd {date}', f'.Dt {name.upper()} {SECTION}',
               f'.Os "rmem {version}"' if version else '.Os']
        text[f'{name}.{SECTION}'] = '\n'.join([*top, *lines]) + '\n'

    for header in found:
        add(header.name, header.page())
        for name in header.linked():
            text.setdefault(f'{name}.{SECTION}', f'.so man3/{header.name}.{SECTION}\n')
    for header in found:
        for function in header.functions:
            add(function.name, function.page(known))
    return text


def write(path, text):
    with open(path, 'w', encoding='utf-8') as file:
        file.write(text)


def main():
    if not 2 <= len(sys.argv) <= 4 or sys.argv[1].startswith('-'):
        sys.exit(__doc__.strip())
    out, version, depfile = (sys.argv[1:] + ['', ''])[:3]
    with tempfile.TemporaryDirectory() as tmp:
        found = list(headers(run_doxygen(tmp)))
        text = pages(found, version)
    shutil.rmtree(out, ignore_errors=True)
    os.makedirs(out)
    for name, page in text.items():
        write(os.path.join(out, name), page)
    if depfile:
        write(depfile, ' '.join([f'{out}:', *(header.path for header in found)]) + '\n')


if __name__ == '__main__':
    main()

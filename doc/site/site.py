#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The site: the guides by Sphinx, the API by Doxygen, and a check of the links within it.

usage: site.py DIRECTORY

The pages are in DIRECTORY/html, the first one is index.html. It needs no network. Exit status 1 if a
guide has an error, or a link leads nowhere.
"""

import html.parser
import os
import re
import shutil
import subprocess
import sys
import urllib.parse
import xml.etree.ElementTree as ET

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SITE = os.path.join(ROOT, 'doc/site')
PAGES = ('README.md', 'CHANGELOG.md', 'CONTRIBUTING.md', 'SECURITY.md', 'LICENSE', 'doc')


def read(path):
    """Text of a file."""
    with open(path, encoding='utf-8') as file:
        return file.read()


def write(path, text):
    """Replace a file."""
    with open(path, 'w', encoding='utf-8') as file:
        file.write(text)


def run_doxygen(out, version):
    """Make html/api, and the names in it as a tag file."""
    layout = f'{out}/layout.xml'
    subprocess.run(['doxygen', '-l', layout], check=True, stdout=subprocess.DEVNULL)
    text = read(layout).replace('<tab type="pages"', '<tab type="user" url="../index.html" '
                                'title="Guides"/>\n    <tab type="pages"', 1)
    write(layout, text)
    conf = read(os.path.join(ROOT, 'doc/Doxyfile')) + f'''
        PROJECT_NUMBER = {version}
        INPUT += doc/site/groups.dox
        FILE_PATTERNS += *.dox
        OUTPUT_DIRECTORY = "{out}/html"
        HTML_OUTPUT = api
        HTML_EXTRA_STYLESHEET = doc/site/static/api.css
        HTML_COLORSTYLE_HUE = 160
        HTML_TIMESTAMP = NO
        LAYOUT_FILE = "{layout}"
        GENERATE_TREEVIEW = YES
        VERBATIM_HEADERS = NO
        GENERATE_TAGFILE = "{out}/api.tag"
        WARN_LOGFILE = "{out}/warnings"
    '''
    done = subprocess.run(['doxygen', '-'], input=conf, text=True, cwd=ROOT, check=False,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    warnings = read(f'{out}/warnings')
    if done.returncode != 0 or warnings:
        sys.exit(f'{warnings}doxygen failed, status {done.returncode}')


def reference(tags):
    """Return the page of all functions, by group and header."""
    root = ET.parse(tags).getroot()
    files = {compound.findtext('name'): compound for compound in root.findall('compound[@kind="file"]')}
    lines = ['# Functions by group', '', 'The <a href="api/index.html">API pages</a> describe them, '
             'their types and macros.', '']
    groups = {group.findtext('title'): [file.text for file in group.findall('file')]
              for group in root.findall('compound[@kind="group"]')}
    grouped = sum(groups.values(), [])
    groups['Other headers'] = sorted(set(files) - set(grouped) - {'groups.dox'})
    for title, headers in groups.items():
        if headers:
            lines += [f'## {title}', '', '| header | functions |', '| --- | --- |']
        for header in headers:
            names = [member.findtext('name') for member in files[header].findall('member')
                     if member.get('kind') == 'function']
            lines.append(f"| `{header}` | {', '.join(f'`{name}()`' for name in names)} |")
        lines.append('')
    return '\n'.join(lines)


def contents(source):
    """Return the table of contents, with the guides that are not in it at its end."""
    text = read(f'{SITE}/contents.md')
    left = sorted(name for name in (os.path.splitext(file)[0] for file in os.listdir(f'{source}/doc')
                                    if file.endswith('.md')) if f'doc/{name}\n' not in text)
    if left:
        text += ''.join(['\n```{toctree}\n:hidden:\n:caption: More\n\n'] +
                        [f'doc/{name}\n' for name in left] + ['```\n'])
    return text


def run_sphinx(out, version):
    """Make the guides, from copies of the files, to which the reference and the contents are added."""
    source = f'{out}/source'
    for name in PAGES:
        path = os.path.join(ROOT, name)
        if os.path.isdir(path):
            shutil.copytree(path, f'{source}/{name}', ignore=shutil.ignore_patterns('site', 'man'))
        else:
            shutil.copy(path, source)
    for name in os.listdir(f'{source}/doc'):
        if name.endswith('.md'):  # links to headers: their names are links to their pages
            text = read(f'{source}/doc/{name}')
            write(f'{source}/doc/{name}',
                  re.sub(r'\[`?([\w.()]+)`?\]\(\.\./lib/[\w/]+\.h\)', r'`\1`', text))
    write(f'{source}/README.md', read(f'{source}/README.md') + contents(source))
    write(f'{source}/reference.md', reference(f'{out}/api.tag'))
    done = subprocess.run(['sphinx-build', '-q', '-W', '--keep-going', '-b', 'html', '-c', SITE, '-d',
                           f'{out}/doctrees', source, f'{out}/html'], check=False,
                          env=dict(os.environ, RMEM_VERSION=version, RMEM_TAGS=f'{out}/api.tag'))
    if done.returncode != 0:
        sys.exit(f'sphinx-build failed, status {done.returncode}')
    shutil.copy(f'{out}/html/README.html', f'{out}/html/index.html')


class Page(html.parser.HTMLParser):
    """The links of a page, and its anchors."""

    def __init__(self, path):
        super().__init__()
        self.links, self.anchors = [], set()
        self.feed(read(path))

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if name == 'id' or name == 'name' and tag == 'a':
                self.anchors.add(value)
            elif name in ('href', 'src') and value:
                self.links.append(value)


def check_links(top):
    """Return the links of the pages to files or anchors that do not exist."""
    pages, bad = {}, []
    for directory, _, names in os.walk(top):
        for name in names:
            if name.endswith('.html'):
                path = os.path.join(directory, name)
                pages[path] = Page(path)
    for path, page in pages.items():
        for link in page.links:
            url = urllib.parse.urlsplit(link)
            if url.scheme or url.netloc:
                continue
            target = os.path.normpath(os.path.join(os.path.dirname(path), urllib.parse.unquote(
                url.path))) if url.path else path
            anchor = urllib.parse.unquote(url.fragment)
            # Doxygen 1.9 links fields of anonymous structs to anchors that it does not write.
            is_checked = not path.startswith(f'{top}/api/') and target in pages
            if not os.path.exists(target) or (anchor and is_checked and
                                              anchor not in pages[target].anchors):
                bad.append(f'{os.path.relpath(path, top)}: {link}')
    return len(pages), sum(len(page.links) for page in pages.values()), bad


def main():
    """Make the site."""
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    out = os.path.abspath(sys.argv[1])
    version = re.search(r"version: '(.*)'", read(os.path.join(ROOT, 'meson.build')))[1]
    for name in ('html', 'source', 'doctrees'):
        shutil.rmtree(f'{out}/{name}', ignore_errors=True)
    os.makedirs(f'{out}/html')
    os.makedirs(f'{out}/source')
    run_doxygen(out, version)
    run_sphinx(out, version)
    pages, links, bad = check_links(f'{out}/html')
    for line in bad:
        print(line, file=sys.stderr)
    if bad:
        sys.exit(f'site.py: {len(bad)} links lead nowhere')
    print(f'site.py: {pages} pages, {links} links')


main()

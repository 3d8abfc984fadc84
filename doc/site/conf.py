# SPDX-License-Identifier: BSD-3-Clause
"""Sphinx: the guides, in which names of the API are links to the pages of Doxygen (site.py)."""

import os
import re
import xml.etree.ElementTree as ET

from docutils import nodes

project = 'rmem'
author = 'The rmem authors'
copyright = '2026, the rmem authors'  # pylint: disable=redefined-builtin
version = release = os.environ['RMEM_VERSION']

extensions = ['myst_parser']
myst_heading_anchors = 4
root_doc = 'README'
html_theme = 'furo'
html_title = f'rmem {version}'
html_copy_source = False
html_show_sphinx = False
html_theme_options = {
    'light_css_variables': {'color-brand-primary': '#0b6e4f', 'color-brand-content': '#0b6e4f'},
    'dark_css_variables': {'color-brand-primary': '#58c29b', 'color-brand-content': '#58c29b'},
}
html_static_path = [os.path.join(os.path.dirname(__file__), 'static')]
html_css_files = ['site.css']
pygments_style = 'friendly'
highlight_language = 'none'


def api_names(path):
    """Return the pages of functions, types, macros and headers, by their names."""
    names = {}
    for compound in ET.parse(path).getroot().iter('compound'):
        kind, page = compound.get('kind'), compound.findtext('filename')
        if kind in ('struct', 'union', 'file'):
            names.setdefault(compound.findtext('name'), page + ('' if '.html' in page else '.html'))
        if kind == 'file':
            for member in compound.iter('member'):
                names.setdefault(member.findtext('name'),
                                 f"{member.findtext('anchorfile')}#{member.findtext('anchor')}")
                for value in member.iter('enumvalue'):
                    names.setdefault(value.text, f"{value.get('anchorfile')}#{value.get('anchor')}")
    return names


def link_names(app, doctree, docname):
    """Link `rmem_mr_reg()`, `struct rmem_wc` and `rmem_mr.h` to their pages."""
    up = '../' * docname.count('/')
    for literal in list(doctree.findall(nodes.literal)):
        found = re.fullmatch(r'(?:struct |enum )?(\w+(?:\.h)?)(?:\(\)|::\w+|\[\])?', literal.astext())
        page = app.api_names.get(found[1]) if found else None
        if page and not isinstance(literal.parent, nodes.reference):
            link = nodes.reference('', '', internal=True, refuri=f'{up}api/{page}')
            literal.replace_self(link)
            link += literal


def setup(app):
    """Called by Sphinx."""
    app.api_names = api_names(os.environ['RMEM_TAGS'])
    app.connect('doctree-resolved', link_names)
    return {'parallel_read_safe': True}

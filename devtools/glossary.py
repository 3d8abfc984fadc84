# SPDX-License-Identifier: BSD-3-Clause
"""Words that the documentation, comments, messages and test names of the tree do not use.

Each has the term of the field that stands for it; see CONTRIBUTING.md, "English".
"""

import re

import ctext

# Where the rule applies: a path, or a folder and all below it.
COVERED = (
    'CHANGELOG.md',
    'CONTRIBUTING.md',
    'README.md',
    'app',
    'config',
    'devtools',
    'doc',
    'drivers',
    'dropin',
    'env',
    'ibcm',
    'lib',
    'meson.build',
    'test',
    'usertools',
)

# Words, as regular expressions without regard to case, and what to write.
WORDS = (
    (r'tells?|told|telling', 'report, return, query, log'),
    (r'says?|said|saying', 'state, report, log'),
    (r'who|whom|whoever', 'the consumer, the caller, the waiter, the polling thread'),
    (r'somebody|someone|nobody|anybody|anyone|no one|everybody|people',
     'the object, the thread or the user'),
    (r'shall', 'must; the requested value'),
    (r'(?:is|are|was|were) to be', 'must be; the requested value'),
    (r'anew', 'again'),
    (r'meanwhile', 'concurrently'),
    (r'thereby', 'so'),
    (r'mend(?:s|ed|ing)?', 'fix'),
    (r'on purpose', 'deliberately; injected'),
    (r'(?:the )?other way (?:a)?round', 'conversely'),
    (r'(?<!%l\[)(?:goes|gone|went)', 'is freed, is unmapped, is evicted, moves to'),
    (r'(?:comes|came)', 'arrives, is allocated, is faulted in, follows'),
    (r'behind', 'after, following'),
    (r'beside', 'next to, in addition to'),
    (r'by (?:windows|leases)', 'with, using'),
    (r'now and then', 'periodically'),
    (r'for (?:a while|good)', 'temporarily; permanently'),
    (r'for ever', 'forever'),
    (r'(?:take|takes|taken|took|taking) away', 'revoke, invalidate'),
    (r'(?:give|gives|given|gave|giving) (?:back|up)', 'release, return, free'),
    (r'(?:take|takes|taken|took|taking) back', 'reclaim'),
    (r'opens (?!a file|the file|the device|/dev)', 'grants access to, is valid for'),
    (r'(?:keys?|it|that|they) (?:rests?|rested)|resting|(?:to|at) rest', 'is quarantined'),
    (r'(?:has|have|had|no|enough|is|was) room', 'free space, a free entry'),
    (r'(?:on (?:its|the|their)|under) way', 'in flight, in progress'),
    (r'look(?:s|ed|ing)? at', 'check, read'),
    (r'ask(?:s|ed|ing)? for', 'request'),
    (r'sees? (?:that|to)', 'check, ensure'),
    (r'wants', 'needs, requires'),
    (r'whatever', 'any; independent of, also if'),
)

_WORDS = [(re.compile(r'(?<![\w-])(?:%s)(?![\w-])' % word, re.I), instead) for word, instead in WORDS]
# Most lines have none of them: one search instead of many.
_ANY = re.compile(r'(?<![\w-])(?:%s)(?![\w-])' % '|'.join(word for word, _ in WORDS), re.I)
_NO_COMMENT = r'^[^#\n]+|`[^`\n]+`'
_WHAT = re.compile(r'(?:^|[.;:!] |\*\*)(What|Who)\b(?![^.]*\?)')


def covered(path):
    return any(path == top or path.startswith(top + '/') for top in COVERED)


def prose(path, text):
    """The text of a file with its code blanked; '' for files that have no prose."""
    def blank(match):
        return re.sub(r'[^\n]', ' ', match.group())
    if path.endswith('.md'):
        text = re.sub(r'^(```|~~~).*?^\1', blank, text, flags=re.S | re.M)
        return re.sub(r'`[^`\n]+`', blank, text)
    if path.endswith(('.c', '.h')):
        return re.sub(r'`[^`\n]+`', blank, ctext.prose(text))
    if path.endswith('.py'):  # comments and docstrings
        parts = re.split(r'("{3}.*?"{3})', text, flags=re.S)
        return ''.join(part if i % 2 else re.sub(_NO_COMMENT, blank, part, flags=re.M)
                       for i, part in enumerate(parts))
    if path.endswith(('.sh', 'meson.build')) or text.startswith('#!'):  # and names of tests
        text = re.sub(r'^\s*verdict (?=["\'])', '#', text, flags=re.M)
        return re.sub(_NO_COMMENT, blank, text, flags=re.M)
    return ''


def breaches(line):
    """Yield (words, what to write) for each breach in a line of prose."""
    if _ANY.search(line):
        for pattern, instead in _WORDS:
            for found in pattern.finditer(line):
                yield found.group().strip(), instead
    if not line.startswith('#'):
        for found in _WHAT.finditer(line.strip(' */\t|')):
            yield '"%s" as the subject of a sentence' % found.group(1), 'the object'

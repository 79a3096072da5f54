# Small templates: one part of the language each. Those that Jinja refuses, this engine has to refuse, too.

given = {
    "n": 7,
    "x": -2.5,
    "text": "Hello, World",
    "wide": "  Grüße 你好 \u3000",
    "none": None,
    "yes": True,
    "list": [3, 1, 2],
    "words": ["b", "A", "c"],
    "map": {"b": 1, "a": {"deep": [1, "two", None, 2.5, True]}, "C": "x"},
    "rows": [{"role": "user", "n": 1}, {"role": "system", "n": 2}, {"role": "user", "n": 3, "extra": {"k": "v"}}],
}
templates = r"""
plain
{{ n }} {{ x }} {{ text }} {{ none }} {{ yes }} {{ list }} {{ map }}
{{ missing }}|{{ map.missing }}|{{ list[9] }}
{{ missing.attribute }}
{{ missing + 1 }}
{{ none.attribute }}|
{{ map.a.deep[1] }} {{ map['a']['deep'][-1] }} {{ text[0] }} {{ text[-1] }} {{ list.1 }}
{{ 'it''s' }}|{{ "a" "b" }}|{{ 'tab\tnew\nline\\ \' \" \u00e9 \x41 \q' }}
{{ 1 + 2 * 3 }} {{ (1 + 2) * 3 }} {{ 7 // 2 }} {{ -7 // 2 }} {{ 7 % 3 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 6 / 2 }} {{ 2 ** 10 }}
{{ 7.5 // 2 }} {{ -7.5 % 2 }} {{ 2 ** -1 }} {{ 2 ** 3 ** 2 }} {{ -2 ** 2 }} {{ 1.0 }} {{ 1e3 }} {{ 1_000 }}
{{ 1 / 0 }}
{{ 1 % 0 }}
{{ 0.1 + 0.2 }} {{ 1e16 }} {{ 1e15 }} {{ 123456789.0 }} {{ 0.0001 }} {{ 0.00001 }} {{ 1e-7 }} {{ 1e300 * 10 }}
{{ 'a' ~ 1 ~ none ~ true ~ missing ~ 1.5 }}
{{ 'a' + 'b' }}{{ [1] + [2, 3] }}
{{ 'a' + 1 }}
{{ 'ab' * 3 }}|{{ 3 * 'ab' }}|{{ 'ab' * 0 }}|{{ 'ab' * -1 }}
{{ 1 == 1.0 }} {{ 1 == '1' }} {{ true == 1 }} {{ none == missing }} {{ [1, 2] == [1, 2] }} {{ {'a': 1} == {'a': 1} }} {{ missing == missing }}
{{ 1 < 2 }} {{ 'a' < 'b' }} {{ 2 >= 2.0 }} {{ 'B' < 'a' }} {{ 1 != 2 }}
{{ 1 < 'a' }}
{{ none < 1 }}
{{ 'ell' in text }} {{ 'b' in words }} {{ 'b' in map }} {{ 5 not in list }} {{ not 3 in list }} {{ 'x' in missing }}
{{ 1 in 'a1' }}
{{ 3 in 3 }}
{{ yes and n }} {{ none or 'other' }} {{ 0 or '' }}| {{ not yes }} {{ not '' }} {{ 'a' and 'b' or 'c' }} {{ false and missing.x }}
{{ 'a' if n > 3 else 'b' }} {{ 'a' if n > 9 }}| {{ 'a' if n > 9 else 'b' if n > 8 else 'c' }}
{{ text[1:4] }} {{ text[:-3] }} {{ text[::-1] }} {{ list[1:] }} {{ list[::2] }} {{ list[5:1:-1] }} {{ list[-2:] }} {{ wide[2:6] }} {{ list[none:2] }}
{{ list[::0] }}
{{ n[1:] }}
{{ (1, 2)[1] }} {{ ('a',)[0] }} {{ () | length }} {{ [] }} {{ {} }} {{ [1, [2, {'k': 'v'}]] }} {{ [1, 2,] }}
{% if n == 7 %}seven{% elif n == 8 %}eight{% else %}other{% endif %}
{% if missing %}a{% elif none %}b{% else %}c{% endif %}
{% if n %}{% if x %}both{% endif %}{% endif %}
{% for i in list %}{{ i }},{% endfor %}
{% for i in missing %}{{ i }}{% else %}nothing{% endfor %}
{% for i in [] %}{{ i }}{% else %}empty{% endfor %}
{% for i in list if i > 1 %}{{ loop.index }}:{{ i }}/{{ loop.length }} {% else %}none{% endfor %}
{% for i in list if i > 9 %}{{ i }}{% else %}none{% endfor %}
{% for k, v in map.items() %}{{ k }}={{ v }};{% endfor %}
{% for k in map %}{{ k }}{% endfor %} {% for c in 'aé你' %}<{{ c }}>{% endfor %}
{% for a, b in [[1, 2], [3, 4]] %}{{ a + b }} {% endfor %}
{% for (a, b) in [[1, 2]] %}{{ a }}{{ b }}{% endfor %}
{% for a, b in [[1, 2, 3]] %}{{ a }}{% endfor %}
{% for i in n %}{{ i }}{% endfor %}
{% for i in none %}{{ i }}{% endfor %}
{% for r in rows %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.previtem.n }}{{ loop.nextitem.n if not loop.last }} {% endfor %}
{% for r in rows %}{{ loop.previtem is defined }}{{ loop.nextitem is defined }}{{ loop.cycle('a', 'b') }}{{ loop.depth }} {% endfor %}
{% for i in range(3) %}{% for j in range(i) %}{{ loop.index }}{{ i }}{{ j }} {% endfor %}{{ loop.index }};{% endfor %}
{% for i in range(10) %}{% if i == 3 %}{% continue %}{% endif %}{% if i == 6 %}{% break %}{% endif %}{{ i }}{% endfor %}
{% break %}
{{ range(5) | list }} {{ range(2, 8, 3) | list }} {{ range(3, 0, -1) | list }} {{ range(0) | list }}
{{ range(1, 2, 0) | list }}
{{ range(1000000) | list | length }}
{% set a = 1 %}{% if true %}{% set a = 2 %}{% endif %}{{ a }}
{% set a = 1 %}{% for i in [1, 2] %}{% set a = i + 10 %}{{ a }}{% endfor %}{{ a }}
{% set ns = namespace(a=1, b='x') %}{% for i in [1, 2] %}{% set ns.a = ns.a + i %}{% endfor %}{{ ns.a }}{{ ns.b }}{{ ns.c }}
{% set ns = namespace(found=false) %}{% for i in list %}{% if i == 1 %}{% set ns.found = true %}{% endif %}{% endfor %}{{ ns.found }}
{% set map.b = 2 %}
{% set a, b = 1, 'two' %}{{ a }}{{ b }}
{% set a, b = [1] %}
{% set a %}block {{ n }}{% endset %}{{ a }}{{ a | length }}
{% set a | upper | trim %} block {{ n }} {% endset %}[{{ a }}]
{% set a = 1, 2, 3 %}{{ a[1] }}
{% macro m(a, b='B', c=none) %}<{{ a }}{{ b }}{{ c }}>{% endmacro %}{{ m(1) }}{{ m(1, 2, 3) }}{{ m(c=4, a=5) }}{{ m() }}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(b=2) }}
{% macro m(i) %}{% if i > 0 %}{{ i }}{{ m(i - 1) }}{% endif %}{% endmacro %}{{ m(5) }}
{% set outer = 'o' %}{% macro m() %}{{ outer }}{{ n }}{% endmacro %}{% for i in [1] %}{{ m() }}{% endfor %}
{% macro m() %}{% set inner = 1 %}{{ inner }}{% endmacro %}{{ m() }}{{ inner }}
{% macro m(x) -%}   {{ x }}   {%- endmacro %}[{{ m(1) | trim }}]
{% filter upper %}abc {{ text }}{% endfilter %}
{% filter replace('a', 'b') | upper %}banana{% endfilter %}
{# comment #}a{#- comment -#}  b
{% generation %}a{{ n }}{% endgeneration %}b
{{ text | upper }} {{ text | lower }} {{ text | title }} {{ "it's a-b (c)" | title }} {{ 'hELLO wORLD' | capitalize }}
{{ "it's a-b".title() }} {{ 'hELLO'.capitalize() }} {{ text.upper() }} {{ text.lower() }}
[{{ wide | trim }}] [{{ wide.strip() }}] [{{ wide.lstrip() }}] [{{ wide.rstrip() }}] [{{ 'xxaxx'.strip('x') }}] [{{ 'xya' | trim('xy') }}]
[{{ '你你a你'.strip('你') }}] [{{ '\u00a0a\u2003'.strip() }}]
{{ text | length }} {{ wide | length }} {{ list | length }} {{ map | count }} {{ '' | length }} {{ missing | length }}
{{ n | length }}
{{ none | length }}
{{ words | join }} {{ words | join(', ') }} {{ list | join('-') }} {{ rows | join(',', attribute='n') }} {{ [1, none, 'a'] | join('|') }}
{{ ', '.join(words) }}
{{ ', '.join(list) }}
{{ list | first }} {{ list | last }} {{ [] | first }}| {{ text | first }} {{ text | last }}
{{ list | sort }} {{ words | sort }} {{ words | sort(reverse=true) }} {{ rows | sort(attribute='role') | map(attribute='n') | list }}
{{ [1, 'a'] | sort }}
{{ list | reverse | list }} {{ text | reverse }}
{{ list | sum }} {{ [1.5, 2] | sum }} {{ rows | sum(attribute='n') }} {{ list | min }} {{ list | max }} {{ words | max }}
{{ [1, 2, 1, 'a', 'a'] | unique | list }}
{{ rows | map(attribute='role') | list }} {{ words | map('upper') | list }} {{ rows | map(attribute='extra.k') | list | length }} {{ rows | map(attribute='zzz', default='d') | list }}
{{ rows | selectattr('role', 'equalto', 'user') | list | length }} {{ rows | selectattr('extra') | list | length }} {{ rows | rejectattr('role', 'eq', 'user') | map(attribute='n') | list }} {{ rows | selectattr('extra', 'defined') | list | length }}
{{ list | select('odd') | list }} {{ list | reject('gt', 1) | list }} {{ [0, 1, '', 'a'] | select | list }} {{ none | select | list }}
{{ missing | default('d') }} {{ '' | default('d') }}| {{ '' | default('d', true) }} {{ none | default('d') }} {{ none | d('e', boolean=true) }} {{ missing | default }}|
{{ 'aXbXc' | replace('X', '-') }} {{ 'aXbXc' | replace('X', '-', 1) }} {{ 'aXbXc'.replace('X', '') }}
{{ '3' | int + 1 }} {{ '3.7' | int }} {{ 'abc' | int }} {{ 'abc' | int(5) }} {{ 3.9 | int }} {{ -3.9 | int }} {{ '2.5' | float }} {{ 'x' | float }} {{ 3 | float }} {{ ' 4 ' | int }}
{{ -5 | abs }} {{ x | abs }} {{ 2.567 | round(2) }} {{ 2.5 | round }} {{ 3.5 | round }} {{ 2.1 | round(method='ceil') }} {{ 2.9 | round(method='floor') | int }}
{{ n | string + 'a' }} {{ [1] | string }} {{ true | string }}
{{ map | tojson }} {{ list | tojson }} {{ text | tojson }} {{ none | tojson }} {{ yes | tojson }} {{ x | tojson }} {{ wide | tojson }}
{{ map | tojson(indent=2) }} {{ [] | tojson(indent=2) }} {{ {} | tojson(indent=2) }} {{ [[1], {'a': []}] | tojson(indent=4) }}
{{ map | tojson(separators=(',', ':')) }} {{ map | tojson(sort_keys=true) }} {{ wide | tojson(ensure_ascii=true) }}
{{ 'a"b\\c\n\t<>&\'/' | tojson }} {{ '\x01\x08' | tojson }} {{ '😀' | tojson(true) }} {{ 1e20 | tojson }} {{ 1.0 | tojson }}
{{ missing | tojson }}
{{ map | dictsort }} {{ map | items | list }}
{{ 'a\nb\n\nc' | indent }}|{{ 'a\nb' | indent(2, true) }}|{{ 'a\n\nb\n' | indent(2, blank=true) }}|{{ 'a\nb' | indent(width=1, first=true) }}
{{ '<a href="x">\'&' | escape }} {{ '<' | e }} {{ '<b>' | safe }}
{{ text | nosuchfilter }}
{{ text is nosuchtest }}
{{ text.nosuchmethod() }}
{{ nosuchfunction() }}
{% nosuchtag %}
{{ text is string }} {{ n is string }} {{ n is number }} {{ n is integer }} {{ x is float }} {{ yes is boolean }} {{ yes is integer }} {{ yes is number }} {{ none is none }} {{ map is mapping }} {{ list is mapping }} {{ list is sequence }} {{ text is sequence }} {{ map is sequence }} {{ list is iterable }} {{ n is iterable }} {{ missing is iterable }}
{{ missing is defined }} {{ missing is not defined }} {{ n is defined }} {{ missing is undefined }} {{ map.zzz is defined }} {{ not missing is defined }}
{{ n is odd }} {{ n is even }} {{ n is divisibleby 7 }} {{ n is divisibleby(2) }} {{ n is eq 7 }} {{ n is ne(7) }} {{ n is gt 3 }} {{ n is in [7] }} {{ yes is true }} {{ yes is false }} {{ none is sameas none }} {{ 1 is sameas true }}
{{ 'abc' is lower }} {{ 'ABC' is upper }} {{ range is callable }} {{ text is not none and n is number }} {{ 'a' if n is defined else 'b' }}
{{ text.startswith('Hell') }} {{ text.endswith(('x', 'ld')) }} {{ text.startswith(('x', 'y')) }} {{ text.find('o') }} {{ text.find('zz') }} {{ 'é你a'.find('a') }} {{ text.count('l') }} {{ '12'.isdigit() }} {{ 'a1'.isdigit() }}
{{ 'a,b,c'.split(',') }} {{ 'a,b,c'.split(',', 1) }} {{ 'a,b,c'.rsplit(',', 1) }} {{ ' a  b '.split() }} {{ ' a  b c '.split(none, 1) }} {{ ''.split(',') }} {{ ''.split() }} {{ 'a</think>b</think>c'.split('</think>')[-1] }}
{{ 'a'.split('') }}
{{ map.get('b') }} {{ map.get('zz') }} {{ map.get('zz', 'd') }} {{ map.keys() | list }} {{ map.values() | list | length }} {{ map.items() | list | length }}
{{ [1, 2].index(2) }} {{ [1, 1].count(1) }}
{{ list.append(4) }}
{{ list.pop() }}
{{ map.update({'q': 1}) }}
{{ '{} {1}'.format(1) }}
{{ '{}-{}'.format('a', 2) }} {{ '{0}{1}{0}'.format('x', 'y') }} {{ '{k}{{}}'.format(k=1) }}
{{ dict(a=1, b='x') }} {{ dict(map, z=1) | length }} {{ {'a': 1}.a }} {{ {'items': 3}['items'] }}
{{ raise_exception('no: ' ~ n) }}
{{ strftime_now('%d %b %Y %H:%M:%S %A %j') }}
{{ text.__class__ }}|{{ ''.__class__.__mro__ }}
{{ (-5) | abs }} {{ -n }} {{ +n }} {{ - - n }} {{ not not n }}
{{ -'a' }}
{{ n | string | length }} {{ (n ~ 'a') | upper }} {{ n ~ 'a' | upper }} {{ 'a' ~ 'b' == 'ab' }} {{ 1 + 1 ~ 'x' }}
{{ "}}" }} {{ '%}' }} {{ {'a': {'b': 1}} }}
{{ 'a' in ['a'] and 'b' not in ['a'] }} {{ (1, 2) == (1, 2) }}
{{ n
  }}{{
 text }}
{{ n
{{ }}
{% if n %}a
{% endif %}
{% for %}
{% if n %}a{% endfor %}
{{ 'open }}
{# open
{{ (1 }}
{{ [1 }}
{{ n ! }}
{{ 1 2 }}
{% set = 1 %}
{% set a.b = 1 %}
a {{- n -}} b {{- n }} c {{ n -}} d
{%- if true -%}  a  {%- endif -%}  b
x{%+ if true %} y{% endif %}
"""
blocks = [
    "a\n  {% if true %}\n  b\n  {% endif %}\nc\n",
    "a\n  {%- if true %}\n  b\n  {%- endif %}\nc\n\n",
    "a\n\t{% for i in [1, 2] %}\n  {{ i }}\n\t{% endfor %}\n  c",
    "a {% if true %}\n  b {% endif %}\n c",
    "{% if true %}\n\n  a{% endif %}  \n  b",
    "a\n  {# comment #}\n b\n  {#- c #}\n d {# e -#}\n f",
    "  {{ n }}\n  {{ n -}}\n  {{- n }}\n",
    "a\n  {%+ if true %}\n b\n {% endif +%}\n c",
    "{% set x = 1 %}\n{% set y = 2 %}\n\n{{ x }}{{ y }}\n",
    "  {% if true %}a{% endif %}{% if true %}\n  {% endif %} b",
    "a\r\n{% if true %}\r\nb\r\n{% endif %}\r\nc",
    "{%- for m in rows %}\n    {%- if m.role == 'user' %}\n        {{- 'U' + m.n | string + '\\n' }}\n    {%- else %}\n        {{- 'S' }}\n    {%- endif %}\n{%- endfor %}\n",
    "{{ 'a\nb' }}\n{{\n'c'\n}}",
    "\n\n{% if true %}x{% endif %}\n\n",
]
cases = [(f"line {i + 1}", line, given) for i, line in enumerate(templates.strip().split("\n"))]
cases += [(f"block {i + 1}", block, given) for i, block in enumerate(blocks)]

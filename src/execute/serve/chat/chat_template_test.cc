// The golden files are what Python's jinja2 makes of the same templates: tools/make-chat-golden.

#include "execute/serve/chat/chat_template.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "execute/serve/chat/template_functions.h"
#include "ground/base/document.h"
#include "ground/base/testing/places.h"

namespace systole::chat {
namespace {

Result<std::string> rendered(const std::string& text, Map variables = {}) {
  const ChatTemplate chat = TRY(ChatTemplate::parse(text));
  return chat.render(std::move(variables));
}

std::tm golden_time() {
  std::tm time{};
  time.tm_year = 2026 - 1900;
  time.tm_mon = 10;
  time.tm_mday = 27;
  time.tm_hour = 9;
  time.tm_min = 5;
  time.tm_sec = 7;
  time.tm_wday = 5;
  time.tm_yday = 330;
  return time;
}

void check_golden(const std::string& name, std::size_t least) {
  std::ifstream file(SYSTOLE_SOURCE_DIR "/src/execute/serve/chat/golden/" + name, std::ios::binary);
  const Node cases = parse_json(std::string(std::istreambuf_iterator<char>(file), {}), name).value();
  ASSERT_GE(cases.items().size(), least);
  for (const Node& one : cases.items()) {
    Map variables;
    for (const Node::Entry& entry : one.find("variables")->entries())
      variables.emplace_back(entry.key, Value::from(entry.value));
    variables.emplace_back("strftime_now", strftime_of(golden_time()));
    const std::string text = one.find("template")->text();
    const Result<std::string> result = rendered(text, std::move(variables));
    const std::string about = one.find("name")->text() + ": " + text;
    if (const Node* expected = one.find("expected")) {
      ASSERT_TRUE(result.ok()) << about << "\n" << result.error().message;
      EXPECT_EQ(*result, expected->text()) << about;
    } else {
      EXPECT_FALSE(result.ok()) << about << "\n" << one.find("error")->text();
    }
  }
}

TEST(ChatTemplate, SmallTemplatesAreAsJinja) { check_golden("small.json", 150); }
TEST(ChatTemplate, ModelsTemplatesAreAsJinja) { check_golden("models.json", 100); }

TEST(ChatTemplate, AnErrorHasItsLineAndKind) {
  const auto error_of = [](const std::string& text) { return rendered(text).error(); };
  EXPECT_EQ(error_of("a\n{% frob %}").kind, ErrorKind::unsupported);
  EXPECT_EQ(error_of("a\n{{ 'x' | frob }}").message, "chat template, line 2: the filter 'frob' is not supported");
  EXPECT_EQ(error_of("a\n\n{{ raise_exception('no') }}").message, "chat template, line 3: no");
  EXPECT_EQ(error_of("{{ raise_exception('no') }}").kind, ErrorKind::invalid);
  EXPECT_EQ(error_of("{{ [1].append(2) }}").kind, ErrorKind::unsupported);
  EXPECT_EQ(error_of("{{ {1: 2} }}").kind, ErrorKind::unsupported);
  EXPECT_EQ(error_of("{{ 1 < 2 < 3 }}").kind, ErrorKind::unsupported);
  EXPECT_EQ(error_of("{{ 'a'|safe + '<' }}").kind, ErrorKind::unsupported);
  EXPECT_EQ(error_of("\xFF").kind, ErrorKind::invalid);
}

std::string times(std::size_t n, const std::string& text) {
  std::string result;
  for (std::size_t i = 0; i < n; ++i) result += text;
  return result;
}

class Hostile : public testing::TestWithParam<std::string> {};

TEST_P(Hostile, IsRefused) {
  const Result<std::string> result = rendered(GetParam());
  ASSERT_FALSE(result.ok());
  EXPECT_TRUE(result.error().kind == ErrorKind::does_not_fit || result.error().kind == ErrorKind::invalid ||
              result.error().kind == ErrorKind::unsupported)
      << result.error().message;
}

INSTANTIATE_TEST_SUITE_P(
    Nesting, Hostile,
    testing::Values(
        "{{ " + times(50'000, "(") + "1" + times(50'000, ")") + " }}", "{{ " + times(50'000, "not ") + "1 }}",
        "{{ " + times(50'000, "-") + "1 }}", "{{ 1" + times(50'000, "+1") + " }}",
        "{{ 1" + times(50'000, " and 1") + " }}", "{{ a" + times(50'000, ".b") + " }}",
        "{{ a" + times(50'000, "[0]") + " }}", "{{ a" + times(50'000, "()") + " }}",
        "{{ 1" + times(50'000, "|d") + " }}", "{{ 1" + times(50'000, " if 1") + " }}", times(50'000, "{% if 1 %}"),
        times(20'000, "{% for i in [1] %}"), "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
        "{% set n = namespace(s=[1]) %}{% for i in range(6000) %}{% set n.s = [n.s] %}{% endfor %}{{ n.s }}",
        "{% set n = namespace() %}{% set n.a = [n] %}{{ n }}"));

INSTANTIATE_TEST_SUITE_P(
    Steps, Hostile,
    testing::Values("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
                    "{% set n = namespace(s=[1]) %}{% for i in range(60) %}{% set n.s = [n.s, n.s] %}{% endfor %}",
                    "{% set a = 'x' * 8000000 %}{% for c in range(99999) %}{% if a %}{% endif %}{% endfor %}",
                    "{% set a = 'a' * 4000000 %}{% set b = 'a' * 200000 ~ 'b' %}"
                    "{% for i in range(9999) %}{% set c = b in a %}{% endfor %}",
                    "{{ range(99999) | unique | list }}", "{{ range(1000000) }}"));

INSTANTIATE_TEST_SUITE_P(
    Sizes, Hostile,
    testing::Values("{{ 'x' * 999999999999 }}", "{% set a = 'x' * 1000000 %}{{ a | replace('x', a) }}",
                    "{% set a = '\\n' * 1000000 %}{{ a | indent(1000, blank=true) }}",
                    "{% set a = 'x,' * 4000000 %}{{ a.split(',') | length }}",
                    "{% set a = 'x,' * 4000000 %}{{ a.rsplit(',', 99999999) | length }}",
                    "{% set a = 'x' * 8000000 %}{% for c in a %}{% endfor %}",
                    "{% set a = 'x' * 8000000 %}{{ [a, a] | join }}",
                    "{% set a = 'x' * 800000 %}{{ ('{0}' * 1000).format(a) }}",
                    "{% for i in range(99999) %}{{ 'x' * 1000 }}{% endfor %}",
                    "{% set n = namespace(s=[1]) %}{% for i in range(60) %}{% set n.s = n.s + n.s %}{% endfor %}",
                    times(1 << 21, "x")));

INSTANTIATE_TEST_SUITE_P(Numbers, Hostile,
                         testing::Values("{{ (-9223372036854775807 - 1) // -1 }}", "{{ 9223372036854775807 * 2 }}",
                                         "{{ -(-9223372036854775807 - 1) }}", "{{ 1 is divisibleby 0 }}"));

}  // namespace
}  // namespace systole::chat

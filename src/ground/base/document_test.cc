#include "ground/base/document.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "ground/base/philox.h"
#include "ground/base/sourced_yaml.h"
#include "ground/base/utf8.h"

namespace systole {
namespace {

Node yaml(std::string_view text) { return parse_yaml(text, "job.yaml").value(); }
Node json(std::string_view text) { return parse_json(text, "x.json").value(); }
Error yaml_error(std::string_view text) {
  const Result<Node> parsed = parse_yaml(text, "job.yaml");
  return parsed.ok() ? error(ErrorKind::internal, "parsed as {}", to_json(*parsed)) : parsed.error();
}
Error json_error(std::string_view text) {
  const Result<Node> parsed = parse_json(text, "x.json");
  return parsed.ok() ? error(ErrorKind::internal, "parsed as {}", to_json(*parsed)) : parsed.error();
}
Where at(int line, int col) { return {"job.yaml", line, col}; }
std::string repeated(std::string_view text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

TEST(Yaml, remembers_places) {
  const Node node = yaml("a: 1\nmodel:\n  layers: [3, {x: y}]\n");
  ASSERT_EQ(node.entries().size(), 2u);
  EXPECT_EQ(node.entries()[0].where(), at(1, 1));
  EXPECT_EQ(node.find("a")->where(), at(1, 4));
  EXPECT_EQ(node.find("model")->where(), at(3, 3));
  const Node& layers = *node.find("model")->find("layers");
  EXPECT_EQ(layers.where(), at(3, 11));
  EXPECT_EQ(layers.items()[0].where(), at(3, 12));
  EXPECT_EQ(layers.items()[1].find("x")->where(), at(3, 19));
}

TEST(Yaml, plain_scalars_follow_the_core_schema) {
  const Node node =
      yaml("[~, null, true, False, 1, -2.5e3, .5, 0x1f, 0o17, .inf, yes, 1.2.3, '1', \"true\", 1_000, +, .]");
  std::string kinds;
  for (const Node& item : node.items()) kinds += name_of(item.kind())[0];
  EXPECT_EQ(kinds.substr(0, 15), "nnttnnnnnnttttt");  // null null true false, six numbers, then text
  EXPECT_EQ(node.items()[2].kind(), NodeKind::boolean);
  EXPECT_EQ(node.items()[10].kind(), NodeKind::string);
  EXPECT_EQ(node.items()[13].kind(), NodeKind::string);
  EXPECT_EQ(*node.items()[7].as_int(), 31);
  EXPECT_EQ(*node.items()[8].as_int(), 15);
  EXPECT_FALSE(node.items()[9].as_double().ok());
}

TEST(Yaml, reads_styles_and_empty_documents) {
  EXPECT_TRUE(yaml("").is_null());
  EXPECT_TRUE(yaml("# only a comment\n").is_null());
  EXPECT_TRUE(*yaml("a:\n").find("a") == Node());
  EXPECT_EQ(yaml("a: |\n  x\n  y\n").find("a")->text(), "x\ny\n");
  EXPECT_EQ(yaml("a: >\n  x\n  y\n").find("a")->text(), "x y\n");
  EXPECT_EQ(yaml("'it''s': \"\\u00e9\\n\"").find("it's")->text(), "\xc3\xa9\n");
  EXPECT_EQ(yaml("--- {a: 1}\n...\n").find("a")->text(), "1");
  EXPECT_EQ(yaml("1: x").keys(), (std::vector<std::string>{"1"}));
  EXPECT_EQ(yaml("!!str 12").kind(), NodeKind::string);
  EXPECT_EQ(yaml("!!int 12").kind(), NodeKind::number);
}

TEST(Yaml, refuses_duplicate_keys_with_both_places) {
  const Error twice = yaml_error("model: {}\nname: x\nmodel: {}\n");
  EXPECT_EQ(twice.where, at(3, 1));
  EXPECT_NE(twice.message.find("job.yaml:1:1"), std::string::npos) << twice.message;
  EXPECT_EQ(yaml_error("{a: 1, 'a': 2}").kind, ErrorKind::invalid);
  EXPECT_EQ(yaml_error("- {a: {b: 1, b: 2}}").where, at(1, 14));
}

TEST(Yaml, expands_aliases) {
  const Node node = yaml("base: &b {rate: 1, list: &l [1, 2]}\nx: *b\ny: *l\nkey: &k name\n*k : 3\n");
  EXPECT_EQ(*node.find("x"), *node.find("base"));
  EXPECT_EQ(to_json(*node.find("y")), "[1,2]");
  EXPECT_EQ(node.find("name")->text(), "3");
}

TEST(Yaml, refuses_bombs) {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    bomb += fmt::format("a{}: &a{} [{}]\n", i, i, repeated(fmt::format("*a{}, ", i - 1), 9));
  }
  EXPECT_NE(yaml_error(bomb).message.find("expand too far"), std::string::npos) << to_string(yaml_error(bomb));
  const std::string text = "a: &a '" + repeated("x", 5'000) + "'\nb: [" + repeated("*a, ", 50) + "]\n";
  EXPECT_NE(yaml_error(text).message.find("expand too far"), std::string::npos);
  EXPECT_NE(yaml_error("a: &a [*a]").message.find("inside of what it names"), std::string::npos);
  std::string deep = "a0: &a0 x\n";
  for (int i = 1; i < 120; ++i) deep += fmt::format("a{}: &a{} [*a{}]\n", i, i, i - 1);
  EXPECT_NE(yaml_error(deep).message.find("deeper than 100"), std::string::npos) << yaml_error(deep).message;
}

TEST(Yaml, refuses_what_is_too_deep) {
  EXPECT_NE(yaml_error(repeated("[", 200) + repeated("]", 200)).message.find("deeper"), std::string::npos);
  EXPECT_NE(yaml_error(repeated("{a: ", 200) + repeated("}", 200)).message.find("deeper"), std::string::npos);
  EXPECT_NE(yaml_error(repeated("- ", 200) + "x").message.find("deeper"), std::string::npos);
  EXPECT_EQ(yaml_error(repeated("[", 100'000)).kind, ErrorKind::invalid);
  EXPECT_TRUE(parse_yaml(repeated("[", 100) + repeated("]", 100), "f").ok());
}

TEST(Yaml, refuses_what_it_does_not_read) {
  EXPECT_NE(yaml_error("a: 1\n---\nb: 2\n").message.find("second document"), std::string::npos);
  EXPECT_EQ(yaml_error("a: 1\n---\nb: 2\n").where, at(2, 1));
  EXPECT_NE(yaml_error("<<: {a: 1}").message.find("merge keys"), std::string::npos);
  EXPECT_EQ(parse_yaml("\"<<\": 1\n", "f").value().find("<<")->text(), "1") << "quoted it is text";
  EXPECT_EQ(parse_yaml(to_yaml(Node::map({{"<<", 2}})), "f").value(), Node::map({{"<<", 2}}));
  EXPECT_NE(yaml_error("a: !custom 1").message.find("tag"), std::string::npos);
  EXPECT_NE(yaml_error("!!int x").message.find("!!int"), std::string::npos);
  EXPECT_NE(yaml_error("? [a, b]\n: 1\n").message.find("plain text"), std::string::npos);
  EXPECT_NE(yaml_error(": 1\n").message.find("key is empty"), std::string::npos);
  EXPECT_NE(yaml_error("a: *nobody\n").message.find("not valid YAML"), std::string::npos);
  EXPECT_NE(yaml_error(repeated("x", static_cast<int>(kMostYaml) + 1)).message.find("at most"), std::string::npos);
}

TEST(Yaml, says_where_a_quote_opens_that_is_never_closed) {
  const auto opens = [](std::string_view text, int line, int col, char quote) {
    const Error error = yaml_error(text);
    EXPECT_EQ(error.message, "the quote that opens here is never closed") << text;
    EXPECT_EQ(error.where, at(line, col)) << text;
    EXPECT_EQ(error.hint, fmt::format("close it with {}", quote)) << text;
  };
  for (const char* end : {"", "\n", "\nb: 1\n", "\nb: {c: d}\ne: it's\n", "\n---\nc: 1\n", "\n...\n"})
    opens(std::string("a: \"x") + end, 1, 4, '"');
  for (const char* end : {"", "\n", "\nb: \"c\"\n", "\n  ''b\n", "\n---\nc: 1\n"})
    opens(std::string("a: 'x") + end, 1, 4, '\'');
  opens("a: &n !!str \"x\nb: 1\n", 1, 13, '"');
  opens("a: {b: \"c}\nd: 1\n", 1, 8, '"');
  opens("a: {b: \"c}", 1, 8, '"');
  opens("- 'a'\n- b'\n- \"it's\n- c\n", 3, 3, '"');
  opens("\"a: 1\n", 1, 1, '"');
  opens("{\"systole\": \"a", 1, 13, '"');
  EXPECT_EQ(yaml("a: \"x\n  y\"\nb: 'it''s'\nc: don't\nd: |\n  \"e\n"),
            yaml("a: x y\nb: it's\nc: \"don't\"\nd: \"\\\"e\\n\"\n"));
}

TEST(Yaml, says_where_a_bracket_opens_that_is_never_closed) {
  const auto opens = [](std::string_view text, int line, int col, char bracket) {
    const Error error = yaml_error(text);
    EXPECT_EQ(error.message, fmt::format("the '{}' that opens here is never closed", bracket)) << text;
    EXPECT_EQ(error.where, at(line, col)) << text;
    EXPECT_EQ(error.hint, fmt::format("close it with {}", bracket == '{' ? '}' : ']')) << text;
  };
  opens("{\"systole\": 1, ", 1, 1, '{');
  opens("{\"systole\": 1\n", 1, 1, '{');
  opens("{\"a\": [1, 2", 1, 7, '[');
  opens("a: 1\nb: {c: [1, 2], d: 3\n", 2, 4, '{');
  opens("a: [1, 2\n", 1, 4, '[');
  const Error amid = yaml_error("a: {b: 1\nc: 2}\n");
  EXPECT_EQ(amid.message, "not valid YAML: expected ',' or '}'");
  EXPECT_EQ(amid.where, at(2, 2));
  EXPECT_EQ(amid.hint, "close the '{' of line 1 with '}', or put ',' between what is in it");
  EXPECT_EQ(yaml_error("? [a, b]\n: 1\n").message, "a key must be plain text, not a list or a map");
}

TEST(Yaml, names_tabs_and_bad_bytes) {
  const Error tab = yaml_error("a:\n  b: 1\n\tc: 2\n");
  EXPECT_NE(tab.message.find("tab"), std::string::npos) << to_string(tab);
  EXPECT_EQ(tab.where, at(3, 1));
  const Error latin = yaml_error("a: 1\nb: caf\xe9\n");
  EXPECT_EQ(latin.where, at(2, 7));
  EXPECT_NE(latin.message.find("0xe9"), std::string::npos);
  EXPECT_EQ(yaml_error(std::string_view("a\0b", 3)).kind, ErrorKind::invalid);
  EXPECT_EQ(yaml_error("\xff\xfe"
                       "a")
                .kind,
            ErrorKind::invalid);
}

// YAML 1.1, which PyYAML and Kubernetes read, has more words that are not text. Numbers and dates follow PyYAML 6.0.
TEST(Yaml, text_that_older_readers_take_for_something_else_is_quoted) {
  for (const char* text : {"NO",    "no",   "nO",         "YES", "y",     "Y",    "ON",   "Off", "oFF", "1_000", "0b11",
                           "0x_ff", "0o17", "2026-11-23", "017", "1_0.5", "true", "null", "1e3", "~",   ""}) {
    EXPECT_EQ(to_yaml(Node(std::string(text))), fmt::format("\"{}\"\n", text)) << text;
    EXPECT_EQ(to_yaml(Node::map({{text, 1}})), fmt::format("\"{}\": 1\n", text)) << text;
  }
  for (const char* text : {"not", "only", "yesterday", "4x4x4", "0b12x", "3d-torus", "v2-8", "n1", "/data/1"})
    EXPECT_EQ(to_yaml(Node(std::string(text))), fmt::format("{}\n", text)) << text;
}

TEST(Json, remembers_places) {
  const Node node = json("{\"a\": 12,\n  \"b\\\"\": [true,null , \"x\"],\"c\":-1.5e3}");
  EXPECT_EQ(node.where(), (Where{"x.json", 1, 1}));
  EXPECT_EQ(node.find("a")->where(), (Where{"x.json", 1, 7}));
  EXPECT_EQ(node.entries()[1].where(), (Where{"x.json", 2, 3}));
  const Node& list = *node.find("b\"");
  EXPECT_EQ(list.where(), (Where{"x.json", 2, 10}));
  EXPECT_EQ(list.items()[1].where(), (Where{"x.json", 2, 16}));
  EXPECT_EQ(list.items()[2].where(), (Where{"x.json", 2, 23}));
  EXPECT_EQ(node.find("c")->where(), (Where{"x.json", 2, 32}));
  EXPECT_EQ(node.find("c")->text(), "-1.5e3");
}

TEST(Json, refuses_with_place) {
  const Error twice = json_error("{\"a\": 1,\n \"a\": 2}");
  EXPECT_EQ(twice.where, (Where{"x.json", 2, 2}));
  EXPECT_NE(twice.message.find("x.json:1:2"), std::string::npos) << twice.message;
  EXPECT_EQ(json_error("{\"a\": nan}").where.col, 8);
  for (const char* bad :
       {"", "NaN", "[1,]", "{\"a\" 1}", "[1] 2", "1e999", "'x'", "\"\\ud800\"", "[\"a", "01", "{1: 2}", "\x01"}) {
    EXPECT_EQ(json_error(bad).kind, ErrorKind::invalid) << bad;
  }
  EXPECT_NE(json_error(repeated("[", 200)).message.find("deeper"), std::string::npos);
  EXPECT_EQ(json_error(repeated("[", 1'000'000)).kind, ErrorKind::invalid);
  EXPECT_EQ(json_error("\"\xff\"").kind, ErrorKind::invalid);
}

TEST(Node, reads_numbers_with_care) {
  EXPECT_EQ(*json("9223372036854775807").as_int(), INT64_MAX);
  EXPECT_EQ(*json("-9223372036854775808").as_int(), INT64_MIN);
  EXPECT_EQ(json("9223372036854775808").as_int().error().kind, ErrorKind::invalid);
  EXPECT_EQ(yaml("99999999999999999999999").as_int().error().kind, ErrorKind::invalid);
  EXPECT_EQ(*yaml("+7").as_int(), 7);
  EXPECT_FALSE(yaml("1.5").as_int().ok());
  EXPECT_FALSE(yaml("1e3").as_int().ok());
  EXPECT_FALSE(yaml("x").as_int().ok());
  EXPECT_EQ(yaml("0").as_int(1).error().message, "expected a whole number of at least 1, found number 0");
  EXPECT_EQ(yaml("9").as_int(1, 8).error().message, "expected a whole number from 1 to 8, found number 9");
  for (const auto& [text, value] : std::vector<std::pair<std::string, double>>{
           {"2e-3", 2e-3}, {".5", 0.5}, {"1.", 1}, {"+1.5", 1.5}, {"0x10", 16}, {"-0", 0}, {"1e-400", 0}}) {
    EXPECT_EQ(*yaml(text).as_double(), value) << text;
  }
  EXPECT_FALSE(yaml("1e400").as_double().ok());
  EXPECT_FALSE(yaml(".nan").as_double().ok());
}

TEST(Node, errors_say_place_kind_and_hint) {
  const Node node = yaml("name: 12\nflag: yes\nmodle: {}\n");
  EXPECT_EQ(to_string(node.find("name")->as_string().error()),
            "job.yaml:1:7: error: expected text, found number 12\n  hint: put it in quotes: \"12\"");
  EXPECT_EQ(node.find("flag")->as_bool().error().hint, "write true");
  EXPECT_EQ(node.get("model").error().hint, "is 'modle' meant as 'model'?");
  EXPECT_EQ(node.get("model").error().kind, ErrorKind::not_found);
  EXPECT_EQ(node.find("name")->get("x").error().kind, ErrorKind::invalid);
  EXPECT_EQ((*node.get("name"))->text(), "12");
}

TEST(Builder, makes_json) {
  Node node = Node::map({{"version", 1}, {"ok", true}, {"name", "a\"b\\\n\x01"}, {"rate", 0.1}, {"none", Node()}});
  node.set("list", Node::sequence({1, 2.5, "x"})).set("empty", Node::map());
  node.set("version", std::int64_t{1} << 62);
  EXPECT_EQ(to_json(node),
            "{\"version\":4611686018427387904,\"ok\":true,\"name\":\"a\\\"b\\\\\\n\\u0001\",\"rate\":0.1,\"none\":null,"
            "\"list\":[1,2.5,\"x\"],\"empty\":{}}");
  EXPECT_EQ(to_json(Node::map({{"a", Node::sequence({1})}, {"b", Node::sequence()}}), 2),
            "{\n  \"a\": [\n    1\n  ],\n  \"b\": []\n}");
  EXPECT_EQ(to_json(Node(std::numeric_limits<double>::quiet_NaN())), "\"nan\"");
  EXPECT_EQ(to_json(Node(-std::numeric_limits<double>::infinity())), "\"-inf\"");
  EXPECT_EQ(to_json(Node("\xff")), "\"\xef\xbf\xbd\"");
  Node list;
  list.push(1).push("two");
  EXPECT_EQ(to_json(list), "[1,\"two\"]");
  EXPECT_THROW(list.set("a", 1), Failure);
}

TEST(Builder, yaml_numbers_become_json_numbers) {
  EXPECT_EQ(to_json(yaml("[0x10, +3, .5, 1., -.5, 007, 1e5, 0o10, TRUE]")), "[16,3,0.5,1,-0.5,7,1e5,8,true]");
  EXPECT_TRUE(parse_json(to_json(yaml("[.inf, -.INF, .nan, 1e999, 00.5e1]")), "x").ok());
}

TEST(Doubles, survive_the_trip) {
  EXPECT_TRUE(std::signbit(*json(to_json(Node(-0.0))).as_double()));
  EXPECT_EQ(to_json(yaml("-0")), "0");  // an integer, and JSON's reader would drop the sign
  PhiloxStream random(5);
  for (int i = 0; i < 2000; ++i) {
    const double value = std::bit_cast<double>(random.next_u64());
    if (!std::isfinite(value)) continue;
    EXPECT_EQ(*json(to_json(Node(value))).as_double(), value);
    EXPECT_EQ(*yaml(to_yaml(Node(value))).as_double(), value);
  }
}

// A random tree with scalars that are hard to quote.
Node random_node(PhiloxStream& random, int depth) {
  static constexpr std::string_view kTexts[] = {"",         "x",           "yes",
                                                "null",     "~",           "12",
                                                "0x1f",     "- a",         "a: b",
                                                "#c",       " lead",       "trail ",
                                                "it's",     "\"q\"",       "a\nb",
                                                "\t",       "{",           "[x]",
                                                "*a",       "&a",          "!t",
                                                "%d",       "@x",          "`",
                                                "<<",       "caf\xc3\xa9", "\x01",
                                                "-",        "?",           ":",
                                                "|",        ">",           "a #b",
                                                "..",       "---",         "1e5",
                                                "\x7f",     "a\nb\n",      "#!/bin/sh\nx\n",
                                                "a\n\n  b", "a\n\n",       "\na",
                                                "a \nb",    "a\n\tb",      "---\n# c\n",
                                                "a\n"};
  const auto text = [&] { return kTexts[random.below(std::size(kTexts))]; };
  const std::uint64_t kind = random.below(depth == 0 ? 4 : 7);
  if (kind == 0) return Node();
  if (kind == 1) return Node(random.below(2) == 1);
  if (kind == 2) return Node(static_cast<std::int64_t>(random.next_u64()));
  if (kind == 3) return Node(text());
  Node node = kind == 4 ? Node::sequence() : Node::map();
  for (std::uint64_t i = random.below(4); i > 0; --i) {
    if (kind == 4) node.push(random_node(random, depth - 1));
    if (kind != 4) node.set(fmt::format("{}{}", text(), i), random_node(random, depth - 1));
  }
  return node;
}

TEST(Writers, read_back_equal) {
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    PhiloxStream random(seed);
    const Node node = random_node(random, 4);
    ASSERT_EQ(json(to_json(node)), node) << to_json(node);
    ASSERT_EQ(json(to_json(node, 2)), node) << to_json(node, 2);
    const std::string text = to_yaml(node);
    const Result<Node> back = parse_yaml(text, "back.yaml");
    ASSERT_TRUE(back.ok()) << text << to_string(back.error());
    ASSERT_EQ(*back, node) << text << to_json(*back);
  }
}

TEST(Yaml, text_of_several_lines_is_a_block) {
  const Node job = Node::map({{"run", "set -u\n\n  exec x\n"}, {"list", Node::sequence({Node("a\nb")})}});
  EXPECT_EQ(to_yaml(job), "run: |\n  set -u\n\n    exec x\nlist:\n  - |-\n    a\n    b\n");
}

TEST(Yaml, a_value_says_where_it_comes_from) {
  Node chips(8), kind("nvidia-l4");
  chips.set_place({std::make_shared<std::string>("machines.csv, 2026-08-01:\nits source"), 4, 1});
  const Node node = Node::map({{"chips", chips}, {"kind", kind}});
  EXPECT_EQ(to_sourced_yaml(node), "chips: 8 # machines.csv, 2026-08-01: its source\nkind: nvidia-l4\n");
  EXPECT_EQ(to_yaml(node), "chips: 8\nkind: nvidia-l4\n");
  EXPECT_EQ(parse_yaml(to_sourced_yaml(node), "back").value(), node);
}

TEST(Utf8, knows_what_is_valid) {
  for (const char* good :
       {"", "a", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xed\x9f\xbf", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_FALSE(find_invalid_utf8(good).has_value()) << good;
  }
  for (const char* bad : {"\x80", "\xc0\xaf", "\xc3", "\xe0\x80\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80",
                          "\xf5\x80\x80\x80", "\xe2\x82"}) {
    EXPECT_EQ(find_invalid_utf8(bad), 0u) << bad;
  }
  EXPECT_EQ(find_invalid_utf8("ab\xff"), 2u);
  EXPECT_EQ(replace_invalid_utf8("a\xe2\x82z"), "a\xef\xbf\xbd\xef\xbf\xbdz");
}

// yaml-cpp reads each of these escapes as one byte.
TEST(Yaml, escapes_of_latin_1_are_text_and_come_back) {
  const Node node = parse_yaml("a: \"x\\Ny\\_z\"\n", "f").value();
  EXPECT_EQ(node.find("a")->text(), "x\xc2\x85y\xc2\xa0z");
  EXPECT_EQ(parse_yaml(to_yaml(node), "f").value(), node);
}

}  // namespace
}  // namespace systole

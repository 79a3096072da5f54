#include "execute/serve/eval/suite.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "ground/base/testing/files.h"
#include "ground/base/text_file.h"
#include "ground/store/sha256.h"

namespace systole {
namespace {

class EvalSuiteTest : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) const {
    write_text_file(folder_.path() + "/" + name, text).value();
  }
  Result<EvalSuite> read(const std::string& text, std::int64_t limit = 0) const {
    write("suite.yaml", "suite: 1\ntasks:\n" + text);
    return read_suite(folder_.path() + "/suite.yaml", limit);
  }
  TemporaryFolder folder_;
};

TEST_F(EvalSuiteTest, multiple_choice_with_few_shot_examples) {
  write("train.jsonl",
        "{\"q\": \"1+1\", \"o\": [\"1\", \"2\"], \"a\": 1}\n\n{\"q\": \"1+2\", \"o\": [\"3\", \"4\"], \"a\": \"3\"}\n"
        "{\"q\": \"unused\", \"o\": [], \"a\": 9}\n");
  write("data.jsonl",
        "{\"q\": \"2+2\", \"o\": [\"5\", \"4\", \"3\"], \"a\": 1}\n{\"q\": \"0\", \"o\": [\"0\", \"1\"], \"a\": 0}\n");
  const std::string task =
      "  - name: sums\n    kind: multiple_choice\n    data: data.jsonl\n    context: \"{q} =\"\n    choices: \"{o}\"\n"
      "    target: \"{a}\"\n    few_shot: { data: train.jsonl, count: 2 }\n";
  const EvalSuite suite = read(task).value();
  ASSERT_EQ(suite.tasks.size(), 1U);
  ASSERT_EQ(suite.tasks[0].items.size(), 2U);
  const EvalItem& item = suite.tasks[0].items[0];
  EXPECT_EQ(item.context, "1+1 = 2\n\n1+2 = 3\n\n2+2 =");
  EXPECT_EQ(item.choices, (std::vector<std::string>{"5", "4", "3"}));
  EXPECT_EQ(item.gold, 1U) << "a number is a place; a text is a choice";
  EXPECT_TRUE(suite.scores());
  EXPECT_FALSE(suite.generates());
  EXPECT_EQ(read(task, 1)->tasks[0].items.size(), 1U);
  EXPECT_EQ(read(task + "    separator: \"; \"\n    delimiter: \"\"\n")->tasks[0].items[0].context,
            "1+1 =2; 1+2 =3; 2+2 =");
}

TEST_F(EvalSuiteTest, choices_may_be_templates_and_examples_may_be_here) {
  const EvalSuite suite =
      read(
          "  - name: t\n    kind: multiple_choice\n    data: [{ a: yes, b: \"no\", right: \"no\" }]\n"
          "    context: Is it?\n    choices: [\"{a}\", \"{b}\", maybe]\n    target: \"{right}\"\n")
          .value();
  EXPECT_EQ(suite.tasks[0].items[0].choices, (std::vector<std::string>{"yes", "no", "maybe"}));
  EXPECT_EQ(suite.tasks[0].items[0].gold, 1U);
}

TEST_F(EvalSuiteTest, answers_and_texts) {
  write("prose.txt", "Once.");
  write("pages.jsonl", "\xEF\xBB\xBF{\"page\": \"one\"}\n{\"page\": \"two\"}\n{\"page\": \"three\"}");
  const EvalSuite suite =
      read(
          "  - { name: e, kind: exact_match, data: [{ q: x, a: 3 }], context: \"{q}\", target: \"{a}\", stop: "
          "[\"\\n\", .], tokens: 8 }\n"
          "  - { name: r, kind: regex, data: [{ q: x, a: 3 }], context: \"{q}\", target: \"{a}\", pattern: '(\\d+)' }\n"
          "  - { name: f, kind: bits_per_byte, file: prose.txt }\n"
          "  - { name: d, kind: bits_per_byte, data: pages.jsonl, text: \"<{page}>\" }\n",
          2)
          .value();
  EXPECT_EQ(suite.tasks[0].items[0].target, "3");
  EXPECT_EQ(suite.tasks[0].stop, (std::vector<std::string>{"\n", "."}));
  EXPECT_EQ(suite.tasks[0].tokens, 8);
  EXPECT_EQ(suite.tasks[1].tokens, 256);
  EXPECT_EQ(suite.tasks[1].pattern->first("is 42.").value(), "42");
  EXPECT_EQ(suite.tasks[2].items[0].target, "Once.");
  ASSERT_EQ(suite.tasks[3].items.size(), 2U) << "the limit";
  EXPECT_EQ(suite.tasks[3].items[1].target, "<two>");
}

TEST_F(EvalSuiteTest, a_judge_and_its_key) {
  write("key", " sesame\n");
  std::filesystem::permissions(folder_.path() + "/key", std::filesystem::perms::owner_read);
  const auto judged = [&](const std::string& judge, const std::string& data = "{ q: x, a: 3 }") {
    return read("  - name: t\n    kind: judge\n    data: [" + data + "]\n    context: \"{q}\"\n    judge: { url: " +
                "\"http://h:1/v1/\", model: m, pattern: '(\\d+)', " + judge + " }\n");
  };
  const std::string rest = "scores: [1, 10], prompt: \"{q}: {response}?\"";
  const EvalSuite suite = judged(rest + ", key: file:key, timeout: 5s, retries: 0").value();
  const JudgeSpec& judge = *suite.tasks[0].judge;
  EXPECT_EQ(judge.url, "http://h:1/v1");
  EXPECT_EQ(judge.key, "sesame");
  EXPECT_EQ(judge.timeout, Seconds(5.0));
  EXPECT_EQ(judge.retries, 0);
  EXPECT_EQ(suite.tasks[0].items[0].fields.text_at("a"), "3");
  EXPECT_EQ(suite.files.size(), 1U) << "the key is no part of what is asked";
  EXPECT_TRUE(suite.generates());
  for (const auto& [wrong, said] : std::vector<std::pair<std::string, std::string>>{
           {rest + ", key: sk-secret", "a suite has no key itself"},
           {rest + ", key: env:SYSTOLE_NO_SUCH_KEY", "there is no environment variable 'SYSTOLE_NO_SUCH_KEY'"},
           {rest + ", key: file:gone", "gone"},
           {rest + ", timeout: 0s", "1ms to 1h"},
           {"scores: [1, 10], prompt: \"{q}?\"", "the prompt does not have the answer"},
           {"scores: [10, 1], prompt: \"{response}\"", "the lowest score is not below"},
           {"scores: [1], prompt: \"{response}\"", "the lowest and the highest score"},
           {"scores: [1, 10], prompt: \"{response} {gone}\"", "there is no such field"}}) {
    const Result<EvalSuite> refused = judged(wrong);
    ASSERT_FALSE(refused.ok()) << wrong;
    EXPECT_NE(to_string(refused.error()).find(said), std::string::npos) << to_string(refused.error());
    EXPECT_EQ(to_string(refused.error()).find("sk-secret"), std::string::npos) << to_string(refused.error());
  }
  EXPECT_NE(judged(rest, "{ q: x, response: y }").error().message.find("a field 'response'"), std::string::npos);
}

TEST_F(EvalSuiteTest, programs_and_their_bounds) {
  const auto coded = [&](const std::string& more) {
    return read("  - { name: t, kind: pass_at_k, data: [{ p: x }], context: \"{p}\", program: \"{p}{response}\", " +
                more + " }\n");
  };
  const EvalSuite suite =
      coded("command: [sh, a.sh], file: a.sh, samples: 10, k: 5, temperature: 0.8, timeout: 3s, memory: 64MiB").value();
  const ProgramSpec& program = *suite.tasks[0].program;
  EXPECT_EQ(program.command, (std::vector<std::string>{"sh", "a.sh"}));
  EXPECT_EQ(program.k, 5);
  EXPECT_EQ(program.timeout, Seconds(3.0));
  EXPECT_EQ(program.memory, kMiB * 64);
  EXPECT_TRUE(suite.runs_programs());
  EXPECT_FALSE(coded("command: []").ok());
  EXPECT_FALSE(coded("command: [sh], file: ../a").ok());
  EXPECT_FALSE(coded("command: [sh], samples: 2, k: 3, temperature: 1").ok());
  EXPECT_EQ(coded("command: [sh], samples: 2").error().message, "at temperature 0 all 2 samples are the same");
}

TEST_F(EvalSuiteTest, a_requirement_can_name_every_task) {
  const auto called = [&](const std::string& name) {
    return read("  - { name: \"" + name + "\", kind: bits_per_byte, data: [{ t: x }], text: \"{t}\" }\n");
  };
  EXPECT_TRUE(called("a.b-c").ok());
  for (const std::string& name : {std::string("a b"), std::string("a<1"), std::string("é"), std::string(190, 'x')}) {
    ASSERT_FALSE(called(name).ok()) << name;
    EXPECT_EQ(called(name).error().where.line, 3);
    EXPECT_NE(called(name).error().message.find("--require"), std::string::npos);
  }
  EXPECT_FALSE(read("  - { name: \"\", kind: bits_per_byte, data: [{ t: x }], text: \"{t}\" }\n").ok());
}

TEST_F(EvalSuiteTest, several_suites_are_one_whose_tasks_have_their_names) {
  const std::string task = "suite: 1\ntasks:\n  - { name: t, kind: bits_per_byte, data: data.jsonl, text: \"{t}\" }\n";
  write("terse.yaml", task);
  std::filesystem::create_directory(folder_.path() + "/more");
  write("more/polite.v2.yaml", task);
  write("more/terse.yml", task);
  write("a b.yaml", task);
  write("data.jsonl", "{\"t\": \"here\"}\n");
  write("more/data.jsonl", "{\"t\": \"there\"}\n{\"t\": \"again\"}\n");
  const auto at = [&](const std::string& name) { return folder_.path() + "/" + name; };
  const EvalSuite both = read_suites({at("terse.yaml"), at("more/polite.v2.yaml")}, 1).value();
  ASSERT_EQ(both.tasks.size(), 2U);
  EXPECT_EQ(both.tasks[0].name, "terse/t");
  EXPECT_EQ(both.tasks[1].name, "polite.v2/t");
  ASSERT_EQ(both.tasks[1].items.size(), 1U) << "the limit";
  EXPECT_EQ(both.tasks[1].items[0].target, "there") << "its own folder's";
  EXPECT_EQ(read_suites({at("terse.yaml")})->tasks[0].name, "t");
  const Result<EvalSuite> wrong =
      read_suites({at("terse.yaml"), at("more/terse.yml"), at("a b.yaml"), at("gone.yaml")});
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.error().message, "two suites are called 'terse'");
  EXPECT_EQ(wrong.error().where.file, at("more/terse.yml"));
  ASSERT_EQ(wrong.error().others.size(), 2U);
  EXPECT_EQ(wrong.error().others[0].message, "--require cannot name the task 'a b/t'");
}

TEST_F(EvalSuiteTest, has_the_hashes_of_all_that_it_read) {
  write("prose.txt", "Once.");
  write("data.jsonl", "{\"t\": \"x\"}\n");
  const std::string tasks =
      "  - { name: a, kind: bits_per_byte, file: prose.txt }\n"
      "  - { name: b, kind: bits_per_byte, data: data.jsonl, text: \"{t}\" }\n"
      "  - { name: c, kind: exact_match, data: data.jsonl, context: x, target: y, few_shot: { data: data.jsonl, count: "
      "1 "
      "} }\n";
  const EvalSuite suite = read(tasks).value();
  ASSERT_EQ(suite.files.size(), 3U) << "each once";
  EXPECT_EQ(suite.files[0].path, folder_.path() + "/suite.yaml");
  EXPECT_EQ(suite.files[1].sha256, sha256_of("Once."));
  EXPECT_EQ(suite.sha256(),
            sha256_of(suite.files[0].sha256 + "\n" + sha256_of("Once.") + "\n" + suite.files[2].sha256 + "\n"));
  write("data.jsonl", "{\"t\": \"y\"}\n");
  EXPECT_NE(read(tasks)->sha256(), suite.sha256());
}

TEST_F(EvalSuiteTest, all_wrong_tasks_are_told_at_once_at_their_places) {
  const Result<EvalSuite> wrong = read(
      "  - { name: a, kind: bits_per_byte, fil: x }\n"
      "  - { name: b, kind: bits_per_byte, data: [{ t: x }], text: \"{t}\" }\n"
      "  - { name: b, kind: bits_per_byte, data: [{ t: x }], text: \"{t}\" }\n"
      "  - 7\n");
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.error().message, "unknown key 'fil'");
  EXPECT_EQ(wrong.error().hint, "did you mean 'file'?");
  EXPECT_EQ(wrong.error().where.line, 3);
  ASSERT_EQ(wrong.error().others.size(), 2U);
  EXPECT_EQ(wrong.error().others[0].message, "two tasks are called 'b'");
  EXPECT_EQ(wrong.error().others[0].where.line, 5);
  EXPECT_EQ(wrong.error().others[1].where.line, 6);
}

}  // namespace
}  // namespace systole

// `systole batch` as its users meet it: rows in, answers out, and a process that dies in between.

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <regex>

#include "ground/base/document.h"
#include "ground/base/testing/files.h"
#include "operate/cli/testing/run_systole.h"

namespace systole::cli {
namespace {

constexpr int kRows = 12;

class BatchCommand : public testing::Test {
 protected:
  BatchCommand() {
    std::filesystem::copy(SYSTOLE_SOURCE_DIR "/src/execute/weights/golden/gpt2", systole_.folder() / "model");
    std::string rows;
    for (int i = 0; i < kRows; ++i)
      rows += fmt::format("{{\"custom_id\": \"r{}\", \"text\": \"{} beings\"}}\n", i, std::string(i % 5 + 1, 'a'));
    systole_.write("rows.jsonl", rows);
    systole_.write("job.yaml", job("completions", "prompt: \"All {text}\"\nmax_tokens: 6\nslots: 3\n"));
  }

  static std::string job(const std::string& kind, const std::string& more, const std::string& out = "out.jsonl") {
    return fmt::format("systole: 1\nmodel: model\ninput: rows.jsonl\noutput: {}\nkind: {}\n{}", out, kind, more);
  }
  Captured run(std::vector<std::string> more = {}) const {
    std::vector<std::string> words{"batch", "job.yaml", "--backend", "reference"};
    words.insert(words.end(), more.begin(), more.end());
    return systole_.run(words);
  }
  // Killed by the system when a file of it would get larger: in the middle of a write.
  Captured killed_at(std::uint64_t bytes) const {
    Command command;
    command.argv = {SYSTOLE_BINARY_DIR "/src/operate/cli/systole", "batch", "job.yaml", "--backend", "reference"};
    command.cwd = systole_.folder().string();
    command.env = {{"NO_COLOR", "1"}, {"HOME", command.cwd}};
    command.limits = {{RLIMIT_FSIZE, bytes}, {RLIMIT_CORE, 0}};
    return run_captured(command).value();
  }
  std::string text(const std::string& name) const { return text_of(systole_.folder() / name); }
  // The moment of the job is no part of an answer.
  std::string timeless(const std::string& name) const {
    return std::regex_replace(text(name), std::regex(R"("created":\d+)"), "\"created\":0");
  }
  std::vector<Node> lines(const std::string& name) const {
    std::vector<Node> nodes;
    const std::string all = text(name);
    for (std::size_t begin = 0, end = 0; (end = all.find('\n', begin)) != all.npos; begin = end + 1)
      nodes.push_back(parse_json(std::string_view(all).substr(begin, end - begin), name).value());
    return nodes;
  }
  static int count(const std::string& text, const std::string& part) {
    int found = 0;
    for (std::size_t at = 0; (at = text.find(part, at)) != text.npos; ++at) ++found;
    return found;
  }

  SystoleRunner systole_;
};

TEST_F(BatchCommand, answers_each_row_and_says_what_it_did) {
  const Captured ran = run({"--json"});
  ASSERT_EQ(ran.exit.code, 0) << ran.err;
  EXPECT_NE(ran.err.find("12 rows to compute, with "), std::string::npos) << ran.err;
  EXPECT_NE(ran.err.find("12 rows in out.jsonl: "), std::string::npos) << ran.err;
  EXPECT_NE(ran.err.find(" tokens/s on reference ("), std::string::npos) << ran.err;
  const Node told = parse_json(ran.out, "stdout").value();
  EXPECT_EQ(told.text_at("rows"), "12");
  EXPECT_EQ(told.text_at("failed"), "0");
  const std::vector<Node> all = lines("out.jsonl");
  ASSERT_EQ(all.size(), std::size_t{kRows});
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i].text_at("custom_id"), fmt::format("r{}", i));
    EXPECT_EQ(all[i].find("response")->find("body")->text_at("object"), "text_completion");
    EXPECT_EQ(all[i].find("response")->find("body")->text_at("model"), "model");
  }

  const std::string before = text("out.jsonl");
  const Captured again = run();
  EXPECT_EQ(again.exit.code, 0) << again.err;
  EXPECT_NE(again.err.find("12 of them finished before"), std::string::npos) << again.err;
  EXPECT_EQ(text("out.jsonl"), before);
}

// Killed five times, each time further on; what a journal had is never computed again.
TEST_F(BatchCommand, goes_on_after_each_kill_to_the_same_answers) {
  systole_.write("job.yaml", job("completions", "prompt: \"All {text}\"\nmax_tokens: 6\nslots: 3\n", "whole.jsonl"));
  ASSERT_EQ(run().exit.code, 0);
  systole_.write("job.yaml", job("completions", "prompt: \"All {text}\"\nmax_tokens: 6\nslots: 3\n"));
  int kept = 0;
  for (const std::uint64_t bytes : {100U, 700U, 1'000U, 1'733U, 2'600U}) {
    const Captured killed = killed_at(bytes);
    EXPECT_EQ(killed.exit.signal, SIGXFSZ) << killed.err;
    EXPECT_FALSE(std::filesystem::exists(systole_.folder() / "out.jsonl"));
    const std::string rows = text("out.jsonl.journal/rows");
    const int now = count(rows, " row ") - (rows.empty() || rows.back() == '\n' ? 0 : 1);
    EXPECT_GE(now, kept) << bytes;
    kept = now;
  }
  EXPECT_GT(kept, 0);
  const Captured ended = run({"--json"});
  ASSERT_EQ(ended.exit.code, 0) << ended.err;
  const Node told = parse_json(ended.out, "stdout").value();
  EXPECT_GE(told.find("rows_before")->as_int().value(), 1);
  EXPECT_LE(told.find("rows_before")->as_int().value(), kept) << "of a torn line nothing is used";
  EXPECT_GE(told.find("lines_dropped")->as_int().value(), 1) << "the kills tore lines";
  EXPECT_EQ(timeless("out.jsonl"), timeless("whole.jsonl"));
}

TEST_F(BatchCommand, is_priced_without_being_run) {
  const Captured said = run({"--dry-run"});
  ASSERT_EQ(said.exit.code, 0) << said.err;
  std::size_t at = 0;
  for (const char* words : {"rows    12 of 12 to compute\n", "tokens  ", " and at most 72 new tokens\n", "time    ",
                            "device  ", "memory  ", " of parameters, ", "input   "}) {
    const std::size_t next = said.out.find(words, at);
    ASSERT_NE(next, std::string::npos) << words << "\n" << said.out;
    at = next;
  }
  EXPECT_FALSE(std::filesystem::exists(systole_.folder() / "out.jsonl.journal")) << "nothing is written";
  const auto priced = [&] { return parse_json(run({"--dry-run", "--json"}).out, "stdout").value(); };
  const Node whole = priced();
  EXPECT_TRUE(whole.find("predicted_s")->is_null()) << "of the reference backend no rates are known";
  const Captured on_cpu = systole_.run({"batch", "job.yaml", "--dry-run", "--json"});
  ASSERT_EQ(on_cpu.exit.code, 0) << on_cpu.err;
  EXPECT_GT(parse_json(on_cpu.out, "stdout").value().find("predicted_s")->as_double().value(), 0);
  EXPECT_GT(whole.find("memory_bytes")->find("parameters")->as_int().value(), 0);
  EXPECT_EQ(whole.text_at("input_bytes"), std::to_string(std::filesystem::file_size(systole_.folder() / "rows.jsonl")));

  // Of a job that was killed, what is left; its journal stays as it is.
  EXPECT_EQ(killed_at(2'000).exit.signal, SIGXFSZ);
  const std::string rows = text("out.jsonl.journal/rows");
  const Node rest = priced();
  EXPECT_LT(rest.find("rows_to_compute")->as_int().value(), kRows);
  EXPECT_LT(rest.find("prompt_tokens")->as_int().value(), whole.find("prompt_tokens")->as_int().value());
  EXPECT_EQ(text("out.jsonl.journal/rows"), rows);
  EXPECT_FALSE(std::filesystem::exists(systole_.folder() / "out.jsonl"));

  const Captured ran = run({"--json"});
  ASSERT_EQ(ran.exit.code, 0) << ran.err;
  EXPECT_EQ(parse_json(ran.out, "stdout").value().text_at("prompt_tokens"), whole.text_at("prompt_tokens"));
  EXPECT_EQ(priced().text_at("rows_to_compute"), "0");
}

TEST_F(BatchCommand, a_row_that_is_wrong_has_an_error_and_the_others_answers) {
  systole_.write("rows.jsonl", R"({"text": "a"}
{"txt": "b"}
no json
{"text": "c"}
)");
  const Captured ran = run();
  EXPECT_EQ(ran.exit.code, 0) << ran.err;
  EXPECT_NE(ran.err.find("4 rows, 2 of them with an error"), std::string::npos) << ran.err;
  const std::vector<Node> all = lines("out.jsonl");
  ASSERT_EQ(all.size(), 4U);
  EXPECT_EQ(all[1].find("error")->text_at("param"), "text");
  EXPECT_EQ(all[1].find("error")->text_at("code"), "missing_key");
  EXPECT_TRUE(all[2].find("error")->text_at("message").starts_with("line 3: "));
  EXPECT_TRUE(all[3].find("error")->is_null());

  systole_.write("rows.jsonl", "no json\n");
  systole_.write("job.yaml", job("completions", "prompt: text\n", "none.jsonl"));
  EXPECT_EQ(run().exit.code, 1) << "no row has an answer";
}

TEST_F(BatchCommand, takes_openais_format_chats_and_embeddings) {
  systole_.write("rows.jsonl", R"({"custom_id": "a", "method": "POST", "url": "/v1/chat/completions", "body": )"
                               R"({"model": "gpt", "messages": [{"role": "user", "content": "All"}], "max_tokens": 2}})"
                               "\n");
  systole_.write("job.yaml", job("chat", "name: gpt\n"));
  const Captured none = run();
  EXPECT_EQ(none.exit.code, 3) << none.err;
  EXPECT_NE(none.err.find("has no chat template"), std::string::npos) << none.err;
  EXPECT_NE(none.err.find("hint: write chat_template:"), std::string::npos) << none.err;

  systole_.write("chat.jinja", "{% for message in messages %}{{ message.content }}{% endfor %}");
  systole_.write("job.yaml", job("chat", "name: gpt\nchat_template: chat.jinja\n", "chat.jsonl"));
  const Captured chat = run();
  ASSERT_EQ(chat.exit.code, 0) << chat.err;
  const Node body = *lines("chat.jsonl").at(0).find("response")->find("body");
  EXPECT_EQ(body.text_at("object"), "chat.completion");
  EXPECT_EQ(body.find("choices")->items()[0].find("message")->text_at("role"), "assistant");

  systole_.write("texts.csv", "custom_id,text\nx,All human beings\ny,The sea\n");
  const std::string vectors = "model: model\ninput: texts.csv\noutput: vectors.jsonl\nkind: embeddings\nprompt: text\n";
  systole_.write("job.yaml", vectors);
  const Captured unsaid = run();
  EXPECT_EQ(unsaid.exit.code, 2) << unsaid.err;
  EXPECT_NE(unsaid.err.find("hint: write pooling: mean, last or cls"), std::string::npos) << unsaid.err;
  systole_.write("job.yaml", vectors + "pooling: mean\ndimensions: 4\n");
  ASSERT_EQ(run().exit.code, 0) << "a job that was refused leaves nothing in the way of the next";
  const std::vector<Node> all = lines("vectors.jsonl");
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[1].text_at("custom_id"), "y");
  EXPECT_EQ(all[1].find("response")->find("body")->find("data")->items()[0].find("embedding")->items().size(), 4U);
}

// Without a moment in the answers, they are equal byte for byte.
TEST_F(BatchCommand, classifies_also_after_kills_and_scores) {
  const std::string classify = "prompt: \"All {text} are\"\nlabels: [born free, equal]\n";
  systole_.write("job.yaml", job("classify", classify, "whole.jsonl"));
  const Captured whole = run();
  ASSERT_EQ(whole.exit.code, 0) << whole.err;
  EXPECT_NE(whole.err.find("12 rows in whole.jsonl: "), std::string::npos) << whole.err;
  systole_.write("job.yaml", job("classify", classify));
  for (const std::uint64_t bytes : {100U, 900U, 1'733U, 2'600U}) {
    EXPECT_EQ(killed_at(bytes).exit.signal, SIGXFSZ) << bytes;
    EXPECT_FALSE(std::filesystem::exists(systole_.folder() / "out.jsonl"));
  }
  const Captured ended = run({"--json"});
  ASSERT_EQ(ended.exit.code, 0) << ended.err;
  EXPECT_GE(parse_json(ended.out, "stdout").value().find("rows_before")->as_int().value(), 1);
  EXPECT_EQ(text("out.jsonl"), text("whole.jsonl"));
  const Node body = *lines("out.jsonl").at(0).find("response")->find("body");
  const auto probability = [&](const char* label) {
    return body.find("probabilities")->find(label)->as_double().value();
  };
  EXPECT_NEAR(probability("born free") + probability("equal"), 1, 1e-12);
  EXPECT_EQ(body.text_at("label"), probability("equal") > 0.5 ? "equal" : "born free");

  systole_.write("texts.txt", "All human beings are born free.\n\n");
  systole_.write("job.yaml", "model: model\ninput: texts.txt\noutput: scores.jsonl\nkind: score\n");
  const Captured scored = run();
  ASSERT_EQ(scored.exit.code, 0) << scored.err;
  const std::vector<Node> all = lines("scores.jsonl");
  ASSERT_EQ(all.size(), 2U);
  const Node& score = *all[0].find("response")->find("body");
  EXPECT_EQ(score.text_at("bytes"), "31");
  EXPECT_NEAR(score.find("bits_per_byte")->as_double().value() * 31 * -0.6931471805599453,
              score.find("log_probability")->as_double().value(), 1e-9);
  EXPECT_EQ(all[1].find("error")->text_at("message"), "line 2: prompt: the text is empty");

  systole_.write("job.yaml", job("score", "", "none.jsonl"));
  const Captured unsaid = run();
  EXPECT_EQ(unsaid.exit.code, 2) << unsaid.err;
  EXPECT_NE(unsaid.err.find("prompt: missing: rows of kind score are no requests"), std::string::npos) << unsaid.err;
}

TEST_F(BatchCommand, joins_shards_to_what_one_run_writes) {
  const std::string classify = "prompt: \"All {text} are\"\nlabels: [born free, equal]\n";
  systole_.write("job.yaml", job("classify", classify, "whole.jsonl"));
  ASSERT_EQ(run().exit.code, 0);
  systole_.write("job.yaml", job("classify", classify));
  const auto refused = [&](int code, const std::string& message, const std::string& hint) {
    const Captured said = run({"--join"});
    EXPECT_EQ(said.exit.code, code) << said.err;
    EXPECT_NE(said.err.find(message), std::string::npos) << said.err;
    EXPECT_NE(said.err.find(hint), std::string::npos) << said.err;
    EXPECT_FALSE(std::filesystem::exists(systole_.folder() / "out.jsonl"));
  };
  refused(2, "there is no shard of 'out.jsonl'", "hint: ");
  for (const char* shard : {"0/3", "2/3"}) {
    const Captured ran = run({"--shard", shard});
    ASSERT_EQ(ran.exit.code, 0) << ran.err;
    EXPECT_NE(ran.err.find("4 rows in out."), std::string::npos) << ran.err;
    EXPECT_NE(ran.err.find("systole batch job.yaml --join"), std::string::npos) << ran.err;
  }
  EXPECT_EQ(lines("out.2-of-3.jsonl").at(1).text_at("custom_id"), "r5");
  refused(2, "shard 1/3 is missing: 'out.1-of-3.jsonl'", "hint: systole batch job.yaml --shard 1/3");

  // Another's file in its place.
  const std::filesystem::path folder = systole_.folder();
  std::filesystem::copy(folder / "out.0-of-3.jsonl", folder / "out.1-of-3.jsonl");
  refused(1, "'out.1-of-3.jsonl' is there, and not of a job that is known", "hint: ");
  std::filesystem::copy(folder / "out.0-of-3.jsonl.journal", folder / "out.1-of-3.jsonl.journal");
  refused(1, "the journal of 'out.1-of-3.jsonl' is of another job", "hint: ");
  std::filesystem::remove_all(folder / "out.1-of-3.jsonl.journal");
  std::filesystem::remove(folder / "out.1-of-3.jsonl");
  ASSERT_EQ(run({"--shard", "1/3"}).exit.code, 0);

  // One too many, of another cut.
  systole_.write("out.0-of-2.jsonl", "");
  refused(2, "'out.0-of-2.jsonl' and 'out.0-of-3.jsonl' are shards of two different jobs",
          "hint: move those of one away");
  std::filesystem::remove(folder / "out.0-of-2.jsonl");

  for (int times = 0; times < 2; ++times) {
    const Captured joined = run({"--join", "--json"});
    ASSERT_EQ(joined.exit.code, 0) << joined.err;
    EXPECT_EQ(parse_json(joined.out, "stdout").value().text_at("shards"), "3");
    EXPECT_EQ(text("out.jsonl"), text("whole.jsonl"));
  }
  const Captured whole = run();
  EXPECT_EQ(whole.exit.code, 0) << whole.err;
  EXPECT_NE(whole.err.find("12 of them finished before"), std::string::npos) << whole.err;

  EXPECT_EQ(run({"--shard", "3/3"}).exit.code, 2);
  EXPECT_EQ(run({"--shard", "0/3", "--join"}).exit.code, 2);
}

TEST_F(BatchCommand, refuses_what_it_would_lose_or_mix) {
  systole_.write("out.jsonl", "precious");
  const Captured there = run();
  EXPECT_EQ(there.exit.code, 1) << there.err;
  EXPECT_NE(there.err.find("'out.jsonl' is there"), std::string::npos) << there.err;
  EXPECT_EQ(text("out.jsonl"), "precious");
  std::filesystem::remove(systole_.folder() / "out.jsonl");

  ASSERT_EQ(run().exit.code, 0);
  systole_.write("rows.jsonl", "{\"text\": \"other\"}\n");
  const Captured other = run();
  EXPECT_EQ(other.exit.code, 1) << other.err;
  EXPECT_NE(other.err.find("the journal of 'out.jsonl' is of another job: its input was another"), std::string::npos)
      << other.err;
  EXPECT_NE(other.err.find("rm -rf out.jsonl.journal out.jsonl"), std::string::npos) << other.err;

  systole_.write("rows.jsonl", "{\"text\": \"a\", \"custom_id\": \"x\"}\n\n{\"text\": \"b\", \"custom_id\": \"x\"}\n");
  systole_.write("job.yaml", job("completions", "prompt: text\n", "twice.jsonl"));
  const Captured twice = run();
  EXPECT_EQ(twice.exit.code, 2);
  EXPECT_NE(twice.err.find("rows.jsonl:3: error: custom_id: 'x' is also that of line 1"), std::string::npos)
      << twice.err;

  systole_.write("job.yaml", job("completions", "prompt: text\ntemperatur: 1\n"));
  const Captured wrong = run();
  EXPECT_EQ(wrong.exit.code, 2);
  EXPECT_NE(wrong.err.find("job.yaml:7:13: error: temperatur: unknown field"), std::string::npos) << wrong.err;
  EXPECT_NE(wrong.err.find("did you mean 'temperature'?"), std::string::npos) << wrong.err;
}

}  // namespace
}  // namespace systole::cli

// Batches on a tiny engine: answers in order, rows that are wrong, and each row exactly once whenever the process dies.
#include "execute/serve/batch/batch_run.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cmath>
#include <numbers>

#include "describe/models/bert/bert.h"
#include "execute/serve/eval/log_likelihood.h"
#include "execute/serve/testing/tiny_engine.h"
#include "execute/serve/testing/tiny_tokenizer.h"
#include "ground/store/testing/faulty.h"

namespace systole {
namespace {

constexpr const char* kOut = "out.jsonl";
constexpr std::int64_t kSlots = 2, kSyncRows = 2;

std::vector<std::int32_t> tokens_of_text(const std::string& text) {
  std::vector<std::int32_t> tokens{tiny_tokenizer().bos()};
  Encoder(tiny_tokenizer()).encode(text, tokens);
  return tokens;
}

// Counts the rows that another work begins.
class CountedWork : public BatchWork {
 public:
  CountedWork(std::unique_ptr<BatchWork> work, std::int64_t& begun) : work_(std::move(work)), begun_(begun) {}
  Result<RowSize> measure(BatchRequest request) override { return work_->measure(std::move(request)); }
  EngineCalls calls_of(std::span<const SequenceSize> sequences) const override { return work_->calls_of(sequences); }
  bool has_room() const override { return work_->has_room(); }
  Status begin(const BatchRow& row, BatchRequest request) override {
    TRY(work_->begin(row, std::move(request)));
    ++begun_;
    return {};
  }
  Result<bool> step() override {
    Result<bool> stepped = work_->step();
    ended_ = work_->take_ended();
    return stepped;
  }

 private:
  std::unique_ptr<BatchWork> work_;
  std::int64_t& begun_;
};

class BatchRunTest : public testing::Test {
 protected:
  BatchRunTest()
      : model_(make_decoder(tiny_decoder(tiny_tokenizer().vocabulary(), 64))),
        engine_(sharp_engine(*model_, *device_, {.slots = kSlots})),
        api_(api_of(*engine_)) {}

  static ServedApi api_of(const Engine& engine) {
    ServedApi api{.model = "m", .tokenizer = tiny_tokenizer(), .tokens_of = tokens_of_text, .never = {}};
    api.context = engine.longest_prompt();
    return api;
  }

  // As the command does; `begun_` counts.
  Result<bool> run(Store& store, const std::string& input, const BatchRun::Told& told = {}) {
    return run(store, BatchInput::read(input, "in.jsonl").value(), api_, *engine_, told);
  }
  Result<bool> run(Store& store, const BatchInput& input, const ServedApi& api, Engine& engine,
                   const BatchRun::Told& told = {}) {
    BatchJob job = parse_batch_job(job_, "job.yaml").value();
    job.name = "m";
    TRY(input.complete(job));
    const BatchFacts facts{input.rows(), "m", to_hex(input.hash()), to_json(job.results)};
    const auto journal = TRY(BatchJournal::open({store, kOut}, facts, 1'767'225'600, kSyncRows));
    CountedWork work(is_scored(job.kind)                 ? make_score_work(api, engine, {})
                     : job.kind == BatchKind::embeddings ? make_embedding_work(api, engine)
                                                         : make_completion_work(api, engine, journal->began()),
                     begun_);
    BatchRun run(job, input, work, *journal);
    if (!TRY(run.prepare(told))) return false;
    price_ = run.price();
    if (!TRY(run.compute(told))) return false;
    TRY(journal->finish());
    return true;
  }

  std::vector<Node> lines(Store& store) {
    const std::string text = read_text(store, kOut).value();
    const BatchInput input = BatchInput::read(text, kOut).value();
    std::vector<Node> nodes;
    for (std::size_t row = 0; row < input.rows(); ++row) nodes.push_back(input.fields(row).value());
    return nodes;
  }
  static const Node& body(const Node& line) { return *line.find("response")->find("body"); }
  // That each function has run so far.
  static EngineCalls kernels(Engine& engine) {
    EngineCalls run;
    for (std::size_t f = 0; f < engine.program().functions.size(); ++f)
      run[engine.program().functions[f].name] = engine.executor().counters()[f].calls;
    return run;
  }
  static const Node& choice(const Node& line) {
    return line.find("response")->find("body")->find("choices")->items()[0];
  }

  std::string job_ =
      "{model: m, input: in.jsonl, output: out.jsonl, kind: completions, prompt: q, max_tokens: 3, ignore_eos: true}";
  std::unique_ptr<Device> device_ = make_reference_device();
  std::unique_ptr<const Model> model_;
  std::unique_ptr<Engine> engine_;
  ServedApi api_;
  std::int64_t begun_ = 0;
  BatchPrice price_;  // of the last run
};

constexpr const char* kRows = R"({"q": "ba do"}
{"q": "ki lu men nor pa ri so tan ve wil", "custom_id": "long"}
{"q": "ba do"}
{"question": "no such field", "custom_id": "wrong"}
{"q": "so tan"}
{"q": "
{"q": "wil"}
)";

TEST_F(BatchRunTest, answers_each_row_in_its_place_and_goes_on_past_wrong_ones) {
  const std::unique_ptr<Store> store = make_memory_store();
  ASSERT_TRUE(run(*store, kRows).value());
  EXPECT_EQ(begun_, 5);
  const std::vector<Node> all = lines(*store);
  ASSERT_EQ(all.size(), 7U);
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i].text_at("index"), std::to_string(i));
  EXPECT_EQ(all[1].text_at("custom_id"), "long");
  EXPECT_EQ(all[1].find("response")->text_at("status_code"), "200");
  EXPECT_EQ(all[1].find("response")->find("body")->find("usage")->text_at("prompt_tokens"),
            std::to_string(tokens_of_text("ki lu men nor pa ri so tan ve wil").size()));
  EXPECT_TRUE(all[1].find("error")->is_null());
  for (const std::size_t wrong : {3U, 5U}) {
    EXPECT_TRUE(all[wrong].find("response")->is_null());
    const std::string message = all[wrong].find("error")->text_at("message");
    EXPECT_TRUE(message.starts_with(fmt::format("line {}: ", wrong + 1))) << message;
  }
  EXPECT_EQ(all[3].text_at("custom_id"), "wrong");
  EXPECT_EQ(all[3].find("error")->text_at("code"), "missing_key");

  // Alone, each has the same answer.
  const auto one = sharp_engine(*model_, *device_, {.slots = 1});
  const std::unique_ptr<Store> alone = make_memory_store();
  ASSERT_TRUE(run(*alone, BatchInput::read(kRows, "in.jsonl").value(), api_, *one).value());
  EXPECT_EQ(*read_text(*alone, kOut), *read_text(*store, kOut));
}

TEST_F(BatchRunTest, draws_equal_rows_differently_unless_they_say_a_seed) {
  job_ =
      "{model: m, input: in.jsonl, output: out.jsonl, kind: completions, max_tokens: 8, min_tokens: 8, n: 2, "
      "temperature: 2}";
  std::string rows;
  for (const char* more : {"", "", R"(, "seed": 5)", R"(, "seed": 5)"}) {
    rows += fmt::format(
        R"({{"custom_id": "{}", "method": "POST", "url": "/v1/completions", "body": {{"prompt": "ba"{}}}}})",
        rows.size(), more);
    rows += "\n";
  }
  const std::unique_ptr<Store> store = make_memory_store();
  ASSERT_TRUE(run(*store, rows).value());
  const std::vector<Node> all = lines(*store);
  const auto choices = [&](std::size_t row) { return *all[row].find("response")->find("body")->find("choices"); };
  ASSERT_EQ(choices(0).items().size(), 2U);
  EXPECT_NE(choices(0), choices(1));
  EXPECT_EQ(choices(2), choices(3));
  EXPECT_NE(choices(2).items()[0].text_at("text"), choices(2).items()[1].text_at("text"));
}

TEST_F(BatchRunTest, refuses_a_custom_id_that_comes_twice_and_names_both_lines) {
  const std::unique_ptr<Store> store = make_memory_store();
  const Error error = run(*store,
                          "{\"q\": \"ba\", \"custom_id\": \"a\"}\n{\"q\": \"do\"}\n"
                          "{\"q\": \"ki\", \"custom_id\": \"a\"}\n")
                          .error();
  EXPECT_EQ(error.kind, ErrorKind::invalid);
  EXPECT_EQ(error.where, (Where{"in.jsonl", 3, 0}));
  EXPECT_NE(error.message.find("'a' is also that of line 1"), std::string::npos) << error.message;
  EXPECT_EQ(begun_, 0);
}

TEST_F(BatchRunTest, stops_when_it_is_told_to_and_goes_on) {
  const std::unique_ptr<Store> whole = make_memory_store(), store = make_memory_store();
  ASSERT_TRUE(run(*whole, kRows).value());
  begun_ = 0;
  int calls = 0;
  ASSERT_FALSE(run(*store, kRows, [&](std::int64_t) { return ++calls < 5; }).value());
  EXPECT_FALSE(*store->exists(kOut));
  EXPECT_LT(begun_, 5);
  ASSERT_TRUE(run(*store, kRows).value());
  EXPECT_LE(begun_, 5 + kSlots);
  EXPECT_EQ(*read_text(*store, kOut), *read_text(*whole, kOut));
  begun_ = 0;
  ASSERT_TRUE(run(*store, kRows).value());
  EXPECT_EQ(begun_, 0) << "it is finished";
}

// The law exactly-once: the process is killed at each of its writes, in the middle of it, and at some the power fails,
// too. The output is that of a job that nobody disturbed, and no more than a batch of rows is computed again.
TEST_F(BatchRunTest, exactly_once_whichever_write_is_the_last) {
  FaultyStore whole;
  ASSERT_TRUE(run(whole, kRows).value());
  const std::string expected = *read_text(whole, kOut);
  const std::int64_t computed = begun_;
  ASSERT_GT(whole.changing_calls(), 20);
  for (std::int64_t call = 1; call <= whole.changing_calls(); ++call) {
    for (const Unsynced mode : {Unsynced::kept, Unsynced::torn}) {
      SCOPED_TRACE(fmt::format("call {}, {}", call, mode == Unsynced::kept ? "killed" : "without power"));
      FaultyStore store;
      store.inject(Fault::dies_before(call, call * 13 % 150));
      begun_ = 0;
      EXPECT_THROW((void)run(store, kRows), SimulatedCrash);
      const std::unique_ptr<Store> left = store.survivor(mode, static_cast<std::uint64_t>(call));
      ASSERT_TRUE(run(*left, kRows).value());
      EXPECT_EQ(*read_text(*left, kOut), expected);
      EXPECT_LE(begun_, computed + kSlots + (mode == Unsynced::torn ? kSyncRows : 0));
    }
  }
}

// A disk that is full for one write: the job ends with an error, and goes on once there is space.
TEST_F(BatchRunTest, goes_on_after_a_full_disk) {
  FaultyStore whole;
  ASSERT_TRUE(run(whole, kRows).value());
  for (std::int64_t call = 1; call <= whole.changing_calls(); ++call) {
    SCOPED_TRACE(call);
    FaultyStore store;
    store.inject(Fault::fails(call, ENOSPC, call * 13 % 150));
    begun_ = 0;
    const Result<bool> failed = run(store, kRows);
    if (!failed.ok()) { EXPECT_EQ(failed.error().kind, ErrorKind::no_space) << failed.error().message; }
    store.clear_faults();
    ASSERT_TRUE(run(store, kRows).value());
    EXPECT_EQ(*read_text(store, kOut), *read_text(whole, kOut));
  }
}

// Two slots, in steps: 0: a prompt each of r0 and r1, which ends; 1: r0, and the prompt of r2; 2 and 3: r0 and r2; 4: r0,
// and the prompt of r3; 5: r3, and that of r4; 6: r4, and that of r5; 7 and 8: r4.
TEST_F(BatchRunTest, is_priced_by_what_the_engine_then_runs) {
  job_ = "{model: m, input: in.jsonl, output: out.jsonl, kind: completions, ignore_eos: true}";
  std::string rows;
  for (const int most : {5, 1, 3, 2, 4, 1}) {
    rows += fmt::format(
        R"({{"custom_id": "{}", "method": "POST", "url": "/v1/completions", "body": {{"prompt": "ba", "max_tokens": {}}}}})",
        rows.size(), most);
    rows += "\n";
  }
  const std::vector<std::int32_t> one{1};
  ASSERT_TRUE(engine_->prefill(0, one).ok() && engine_->prefill(1, one).ok());
  const Engine::Next next[] = {{0, 1}, {1, 1}};
  ASSERT_TRUE(engine_->decode(std::span(next).first(1)).ok() && engine_->decode(next).ok());
  EngineCalls once = kernels(*engine_);  // twice, of the prompts
  once.at(prefill_name(16)) /= 2;
  const EngineCalls before = kernels(*engine_);
  const std::unique_ptr<Store> store = make_memory_store();
  ASSERT_TRUE(run(*store, rows).value());
  EXPECT_EQ(price_.rows, 6);
  EXPECT_EQ(price_.prompt_tokens, 6 * std::ssize(tokens_of_text("ba")));
  EXPECT_EQ(price_.new_tokens, 16);
  EXPECT_EQ(price_.calls, (EngineCalls{{prefill_name(16), 6}, {decode_name(1), 6}, {decode_name(2), 2}}));
  const EngineCalls after = kernels(*engine_);
  for (const auto& [name, count] : after) {
    const auto priced = price_.calls.find(name);
    const std::int64_t expected = priced == price_.calls.end() ? 0 : priced->second * once.at(name);
    EXPECT_EQ(count - before.at(name), expected) << name;
  }
}

TEST_F(BatchRunTest, shards_that_are_joined_are_the_whole_byte_for_byte) {
  const std::unique_ptr<Store> whole = make_memory_store(), store = make_memory_store();
  ASSERT_TRUE(run(*whole, kRows).value());
  const BatchInput input = BatchInput::read(kRows, "in.jsonl").value();
  BatchJob job = parse_batch_job(job_, "job.yaml").value();
  job.name = "m";
  const auto joined = BatchJournal::open({*store, kOut}, {input.rows(), "m", "i", "o"}, 0).value();
  for (const std::size_t index : {2U, 0U, 1U}) {
    const BatchShard shard{index, 3};
    const BatchOutput file{*store, shard_file(kOut, shard)};
    const BatchFacts facts{shard.rows(input.rows()), "m", "i", to_string(shard)};
    const auto journal = BatchJournal::open(file, facts, 1'767'225'600).value();
    const auto work = make_completion_work(api_, *engine_, journal->began());
    BatchRun part(job, input, *work, *journal, shard);
    ASSERT_TRUE(part.prepare().value());
    ASSERT_TRUE(part.compute().value());
    journal->finish().value();
    join_shard(file, shard, input.rows(), journal->totals(), *joined).value();
  }
  joined->finish().value();
  EXPECT_EQ(*read_text(*store, kOut), *read_text(*whole, kOut));
  EXPECT_EQ(joined->totals().failed, 2);
  EXPECT_EQ(joined->totals().answer_tokens, 5 * 3);
}

TEST_F(BatchRunTest, a_shard_refuses_a_custom_id_that_comes_twice_in_another) {
  const std::unique_ptr<Store> store = make_memory_store();
  const char* rows = R"({"q": "ba", "custom_id": "a"}
{"q": "do"}
{"q": "ki", "custom_id": "a"}
)";
  const BatchInput input = BatchInput::read(rows, "in.jsonl").value();
  BatchJob job = parse_batch_job(job_, "job.yaml").value();
  job.name = "m";
  const auto journal = BatchJournal::open({*store, kOut}, {1, "m", "i", "o"}, 0).value();
  const auto work = make_completion_work(api_, *engine_, 0);
  BatchRun part(job, input, *work, *journal, {.index = 1, .count = 2});
  EXPECT_EQ(part.prepare().error().key, "custom_id");
}

TEST_F(BatchRunTest, classifies_by_the_likelihood_of_each_label) {
  job_ = "{model: m, input: in.jsonl, output: out.jsonl, kind: classify, prompt: q, labels: [ki, lumen soe, badoki]}";
  const auto scorer = sharp_engine(*model_, *device_, {.score = true, .generates = false});
  std::string words;
  for (int i = 0; i < 100; ++i) words += " do";
  const std::string rows =
      "{\"q\": \"ba do\"}\n{\"q\": \"\"}\n{\"q\": \"" + words + "\"}\n{\"q\": \"men nor pa ri so tan ve wil ki lu\"}\n";
  const BatchInput input = BatchInput::read(rows, "in.jsonl").value();
  FaultyStore store;
  ASSERT_TRUE(run(store, input, api_, *scorer).value());
  EXPECT_EQ(begun_, 3);
  const std::vector<Node> all = lines(store);
  LogLikelihood likelihood(*scorer, tiny_tokenizer(), {});
  const std::vector<std::string> labels{"ki", "lumen soe", "badoki"}, texts{" ki", " lumen soe", " badoki"};
  for (const std::size_t row : {0U, 1U, 3U}) {
    const std::string prompt = input.fields(row).value().text_at("q");
    const std::vector<LogLikelihood::Score> scores = likelihood.of_continuations(prompt, texts).value();
    double sum = 0, most = 0;
    std::string label;
    for (std::size_t i = 0; i < labels.size(); ++i) {
      EXPECT_EQ(body(all[row]).find("log_probabilities")->find(labels[i])->as_double().value(), scores[i].value);
      const double p = body(all[row]).find("probabilities")->find(labels[i])->as_double().value();
      EXPECT_NEAR(p,
                  std::exp(scores[i].value) /
                      (std::exp(scores[0].value) + std::exp(scores[1].value) + std::exp(scores[2].value)),
                  1e-12);
      sum += p;
      if (p > most) label = labels[i];
      most = std::max(most, p);
    }
    EXPECT_NEAR(sum, 1, 1e-12);
    EXPECT_EQ(body(all[row]).text_at("label"), label);
  }
  EXPECT_TRUE(all[2].find("response")->is_null());
  EXPECT_EQ(all[2].find("error")->text_at("param"), "prompt");
  EXPECT_NE(all[2].find("error")->text_at("message").find("at most 65 can be scored"), std::string::npos)
      << all[2].find("error")->text_at("message");

  const std::string expected = *read_text(store, kOut);
  for (std::int64_t call = 1; call <= store.changing_calls(); call += 2) {
    SCOPED_TRACE(call);
    FaultyStore killed;
    killed.inject(Fault::dies_before(call, call * 13 % 150));
    EXPECT_THROW((void)run(killed, input, api_, *scorer), SimulatedCrash);
    const std::unique_ptr<Store> left = killed.survivor(Unsynced::kept, static_cast<std::uint64_t>(call));
    ASSERT_TRUE(run(*left, input, api_, *scorer).value());
    EXPECT_EQ(*read_text(*left, kOut), expected);
  }
}

TEST_F(BatchRunTest, scores_texts_of_any_length_and_is_priced_by_what_the_engine_then_runs) {
  job_ = "{model: m, input: in.jsonl, output: out.jsonl, kind: score, prompt: q}";
  const auto scorer = sharp_engine(*model_, *device_, {.score = true, .generates = false});
  std::string words;
  for (int i = 0; i < 100; ++i) words += " do";
  const std::string rows = "{\"q\": \"ba do\"}\n{\"q\": \"\"}\n{\"q\": \"" + words + "\"}\n";
  const EngineCalls idle = kernels(*scorer);
  for (const std::size_t length : {16U, 64U}) {
    const std::vector<std::int32_t> tokens(length, 1);
    scorer->begin(0, 0);
    ASSERT_TRUE(scorer->score(0, tokens, tokens).ok());
  }
  const EngineCalls before = kernels(*scorer);
  const std::unique_ptr<Store> store = make_memory_store();
  ASSERT_TRUE(run(*store, BatchInput::read(rows, "in.jsonl").value(), api_, *scorer).value());
  EXPECT_GE(price_.calls[score_name(64)], 2) << "windows";
  for (const auto& [name, count] : kernels(*scorer))
    EXPECT_EQ(count - before.at(name), price_.calls[name] * (before.at(name) - idle.at(name))) << name;

  const std::vector<Node> all = lines(*store);
  LogLikelihood likelihood(*scorer, tiny_tokenizer(), {});
  const std::vector<std::pair<std::size_t, std::string>> texts{{0, "ba do"}, {2, words}};
  for (const auto& [row, text] : texts) {
    const LogLikelihood::Score score = likelihood.of_text(text).value();
    EXPECT_EQ(body(all[row]).find("log_probability")->as_double().value(), score.value);
    EXPECT_EQ(body(all[row]).text_at("tokens"), std::to_string(tiny_tokens(text).size()));
    EXPECT_NEAR(body(all[row]).find("bits_per_byte")->as_double().value(),
                -score.value / std::numbers::ln2 / static_cast<double>(text.size()), 1e-12);
  }
  EXPECT_EQ(all[1].find("error")->text_at("param"), "prompt") << "an empty text";
}

TEST_F(BatchRunTest, of_embeddings_has_the_vector_of_each_row) {
  BertSpec spec;
  spec.layers = 1;
  spec.width = 8;
  spec.heads = 2;
  spec.mlp = 12;
  spec.vocabulary = tiny_tokenizer().vocabulary();
  spec.context = 64;
  const auto bert = make_bert(spec);
  const auto engine = sharp_engine(*bert, *device_, {.hidden = true, .generates = false});
  ServedApi api = api_of(*engine);
  api.generates = false;
  api.vectors = ServedVectors{tokens_of_text, {}, engine->hidden_size()};
  job_ = "{model: m, input: in.txt, output: out.jsonl, kind: embeddings, dimensions: 3}";
  const std::unique_ptr<Store> store = make_memory_store();
  const std::string text = "ba do\nki lu men nor pa ri so tan\nba do\n";
  ASSERT_TRUE(run(*store, BatchInput::read(text, "in.txt").value(), api, *engine).value());
  const std::vector<Node> all = lines(*store);
  ASSERT_EQ(all.size(), 3U);
  const auto vector = [&](std::size_t row) {
    return *all[row].find("response")->find("body")->find("data")->items()[0].find("embedding");
  };
  EXPECT_EQ(vector(0).items().size(), 3U);
  EXPECT_EQ(vector(0), vector(2));
  EXPECT_NE(vector(0), vector(1));
}

}  // namespace
}  // namespace systole

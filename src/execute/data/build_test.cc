#include "execute/data/build.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "execute/data/testing/made_up_text.h"
#include "ground/store/testing/faulty.h"

namespace systole {
namespace {

class Build : public testing::Test {
 protected:
  Build() {
    put("a.txt", made_up_documents(1500, 1));
    put("b.txt", made_up_documents(1500, 2));
    options_.train = {texts_.get(), {"a.txt", "b.txt"}, ""};
    options_.held_out_fraction = 0.1;
    options_.tokenizer.vocabulary = 350;
    options_.sequence_length = 32;
  }

  void put(const std::string& path, const std::vector<std::string>& lines) {
    std::string text;
    for (const std::string& line : lines) text += line + "\n";
    write_whole(*texts_, path, text).value();
  }

  Dataset build() { return build_dataset(*out_, options_).value(); }

  std::unique_ptr<Store> texts_ = make_memory_store();
  std::unique_ptr<Store> out_ = make_memory_store();
  BuildOptions options_;
};

// The texts of a split, decoded from its shards.
std::vector<std::string> texts_of(Store& store, const Dataset& dataset, const SplitTokens& split) {
  std::vector<std::string> texts;
  std::vector<std::byte> scratch(kTokenBlockBytes);
  for (const ShardInfo& info : split.shards) {
    const TokenShard shard = TokenShard::open(store, dataset.manifest.key + "/" + info.path).value();
    for (std::int64_t i = 0; i < shard.info().documents; ++i) {
      std::vector<std::int32_t> tokens(static_cast<std::size_t>(shard.document_end(i) - shard.document_begin(i)));
      shard.read(shard.document_begin(i), tokens, scratch).value();
      texts.push_back(dataset.tokenizer.decode(tokens).value());
    }
  }
  return texts;
}

TEST_F(Build, SplitsByContentAndLosesNothing) {
  const Dataset dataset = build();
  std::vector<std::string> train, held_out;
  for (const std::uint64_t seed : {1, 2}) {
    for (const std::string& text : made_up_documents(1500, seed)) {
      (is_held_out(text, 0.1, 0) ? held_out : train).push_back(text);
    }
  }
  EXPECT_EQ(texts_of(*out_, dataset, dataset.manifest.train), train);
  EXPECT_EQ(texts_of(*out_, dataset, dataset.manifest.held_out), held_out);
  std::int64_t bytes = 0;
  for (const std::string& text : held_out) bytes += static_cast<std::int64_t>(text.size()) + 1;
  EXPECT_EQ(dataset.manifest.held_out.bytes, bytes);
  EXPECT_EQ(dataset.held_out->packing.bytes, bytes);
  EXPECT_EQ(dataset.manifest.train.tokens, dataset.train->packing.tokens);
}

TEST_F(Build, FilesOfTheirOwnAreHeldOutAndLeaksAreCounted) {
  std::vector<std::string> held_out = made_up_documents(100, 3);
  held_out.push_back(made_up_documents(1500, 1)[7]);
  put("h.txt", held_out);
  options_.held_out = TextFiles{texts_.get(), {"h.txt"}, ""};
  const Dataset dataset = build();
  EXPECT_EQ(texts_of(*out_, dataset, dataset.manifest.held_out), held_out);
  EXPECT_EQ(dataset.manifest.train.documents, 3000);
  EXPECT_EQ(dataset.manifest.held_out_also_in_train, 1);
}

// A table under the name of one with other edges: found where it is read alone, too.
TEST_F(Build, ATableOfOtherBucketsIsNotRead) {
  const PackingRule rules[] = {PackingRule::bucketed({.edges = {8}}), PackingRule::bucketed({.edges = {16}})};
  std::string paths[2];
  std::optional<Dataset> dataset;
  for (int i : {0, 1}) {
    options_.policy = rules[i];
    dataset = build();
    paths[i] = packing_path(dataset->manifest.key, false, 32, rules[i]);
    EXPECT_TRUE(read_packing(*out_, dataset->manifest, false, 32, rules[i]).ok());
  }
  write_whole(*out_, paths[0], read_all(*out_, paths[1]).value()).value();
  const auto read = read_packing(*out_, dataset->manifest, false, 32, rules[0]);
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().message, "this packing table has other buckets than its name says");
  EXPECT_EQ(open_dataset(*out_, dataset->manifest.key, 32, rules[0]).error().kind, ErrorKind::corrupt);
}

TEST_F(Build, EqualInputsBuildNothingAgain) {
  const Dataset first = build();
  EXPECT_EQ(first.built,
            (std::vector<std::string>{"tokenizer", "token shards", "training packing", "held-out packing"}));
  options_.threads = 1;  // not an input
  const Dataset second = build();
  EXPECT_TRUE(second.built.empty());
  EXPECT_EQ(second.manifest, first.manifest);
  EXPECT_EQ(dataset_inputs(options_).value().key, first.manifest.key);

  options_.sequence_length = 64;  // other rows with the same tokens
  EXPECT_EQ(build().built, (std::vector<std::string>{"training packing", "held-out packing"}));
  EXPECT_EQ(build().manifest.key, first.manifest.key);
}

TEST_F(Build, ThreadsChangeNothing) {
  const Dataset two = build();
  const auto other = make_memory_store();
  options_.threads = 3;
  EXPECT_EQ(build_dataset(*other, options_)->manifest, two.manifest);
}

TEST_F(Build, EveryInputChangesTheKey) {
  std::vector<std::string> keys{dataset_inputs(options_).value().key};
  const auto changed = [&](auto change) {
    BuildOptions options = options_;
    change(options);
    keys.push_back(dataset_inputs(options).value().key);
  };
  changed([](BuildOptions& o) { o.held_out_fraction = 0.2; });
  changed([](BuildOptions& o) { o.seed = 1; });
  changed([](BuildOptions& o) { o.tokenizer.vocabulary = 360; });
  changed([](BuildOptions& o) { o.tokenizer.kind = TokenizerKind::unigram; });
  changed([](BuildOptions& o) { o.tokenizer.sample = Bytes(1000); });
  changed([](BuildOptions& o) { o.train_text.document = DocumentRule::blank_line; });
  changed([](BuildOptions& o) { o.train_text.invalid_utf8 = InvalidUtf8::bytes; });
  changed([](BuildOptions& o) { std::swap(o.train.paths[0], o.train.paths[1]); });
  changed([](BuildOptions& o) { o.train.paths.pop_back(); });
  changed([](BuildOptions& o) { o.held_out = o.train; });
  put("b.txt", made_up_documents(1499, 2));
  keys.push_back(dataset_inputs(options_).value().key);
  std::sort(keys.begin(), keys.end());
  EXPECT_EQ(std::unique(keys.begin(), keys.end()), keys.end());
}

TEST_F(Build, TakesATokenizerThatIsThere) {
  const std::vector<std::string> other = made_up_documents(500, 9);
  const Tokenizer tokenizer = Tokenizer::train({.vocabulary = 320}, other).value();
  options_.tokenizer_model = tokenizer.model();
  const Dataset dataset = build();
  EXPECT_EQ(dataset.tokenizer.hash(), tokenizer.hash());
  EXPECT_EQ(dataset.manifest.vocabulary, 320);
  options_.tokenizer_model = "no model";
  EXPECT_EQ(build_dataset(*out_, options_).error().kind, ErrorKind::corrupt);
}

TEST_F(Build, ManyShardsAreOneDataset) {
  options_.shard_tokens = 5000;
  const Dataset dataset = build();
  EXPECT_GT(dataset.manifest.train.shards.size(), 3u);
  EXPECT_EQ(dataset.train->shards.size(), dataset.manifest.train.shards.size());
  EXPECT_GT(verify_dataset(*out_, dataset.manifest.key)->count(), 0);
  const LengthStats lengths = document_lengths(*out_, dataset.manifest.key, false).value();
  EXPECT_LE(lengths.shortest, lengths.median);
  EXPECT_LE(lengths.p99, lengths.longest);
  EXPECT_GT(lengths.shortest, 0);
}

TEST_F(Build, ALostFileIsMadeAgainAndADamagedOneIsNamed) {
  const Dataset first = build();
  const std::string key = first.manifest.key, shard = key + "/train-00000.tokens";
  out_->remove(shard).value();
  EXPECT_EQ(build().built, (std::vector<std::string>{"tokenizer", "token shards"}));

  for (const std::string& file :
       {shard, key + "/tokenizer.model", packing_path(key, false, 32, PackingPolicy::packed)}) {
    const std::vector<std::byte> whole = read_all(*out_, file).value();
    std::vector<std::byte> damaged = whole;
    damaged[whole.size() - 20] ^= std::byte{8};
    write_whole(*out_, file, damaged).value();
    const auto refused = build_dataset(*out_, options_);
    ASSERT_FALSE(refused.ok()) << file;
    EXPECT_EQ(refused.error().kind, ErrorKind::corrupt) << to_string(refused.error());
    EXPECT_EQ(refused.error().where.file, file);
    EXPECT_FALSE(verify_dataset(*out_, key).ok());
    write_whole(*out_, file, whole).value();
    EXPECT_TRUE(verify_dataset(*out_, key).ok());
  }
}

TEST_F(Build, TheManifestReadsBackAndANewerOneIsRefused) {
  const Dataset dataset = build();
  const std::string json = to_json(dataset.manifest);
  EXPECT_EQ(parse_tokens_manifest(json, "tokens.json").value(), dataset.manifest);
  std::string newer = json;
  newer.replace(newer.find("\"systole_tokens\": 1"), 19, "\"systole_tokens\": 2");
  EXPECT_EQ(parse_tokens_manifest(newer, "tokens.json").error().kind, ErrorKind::unsupported);
  for (std::size_t size = 0; size + 2 < json.size(); size += 11) {
    EXPECT_EQ(parse_tokens_manifest(json.substr(0, size), "tokens.json").error().kind, ErrorKind::corrupt) << size;
  }
  EXPECT_EQ(list_datasets(*out_).value(), (std::vector<std::string>{dataset.manifest.key}));
}

TEST_F(Build, NothingToTrainOnOrToHoldOutIsRefused) {
  put("a.txt", {"only", "three", "documents"});
  options_.train.paths = {"a.txt"};
  options_.held_out_fraction = 1e-9;
  Error refused = build_dataset(*out_, options_).error();
  EXPECT_EQ(refused.kind, ErrorKind::invalid);
  EXPECT_NE(refused.message.find("no document was set aside"), std::string::npos) << refused.message;
  options_.held_out_fraction = 0.999999999;
  refused = build_dataset(*out_, options_).error();
  EXPECT_NE(refused.message.find("no document to train on"), std::string::npos) << refused.message;
  EXPECT_TRUE(list_datasets(*out_)->empty());
}

TEST_F(Build, ACrashAtAnyCallLeavesAWholeDatasetOrNone) {
  put("a.txt", made_up_documents(300, 1));
  options_.train.paths = {"a.txt"};
  options_.tokenizer.vocabulary = 300;
  options_.shard_tokens = 2000;
  FaultyStore counting;
  const TokensManifest complete = build_dataset(counting, options_)->manifest;
  const std::string& key = complete.key;
  const std::int64_t calls = counting.changing_calls();
  ASSERT_GT(calls, 20);
  std::int64_t whole = 0;
  for (std::int64_t call = 1; call <= calls; ++call) {
    FaultyStore store;
    store.inject(call % 2 == 0 ? Fault::dies_before(call, 7) : Fault::dies_after(call));
    EXPECT_THROW((void)build_dataset(store, options_), SimulatedCrash);
    for (const Unsynced mode : {Unsynced::lost, Unsynced::kept, Unsynced::torn}) {
      const auto disk = store.survivor(mode, static_cast<std::uint64_t>(call));
      const std::vector<std::string> keys = list_datasets(*disk).value();
      for (const std::string& found : keys) {
        ++whole;
        EXPECT_EQ(read_tokens_manifest(*disk, found).value(), complete) << "call " << call;
        const auto verified = verify_dataset(*disk, found);
        EXPECT_TRUE(verified.ok()) << "call " << call << ": " << to_string(verified.error());
      }
      if (static_cast<std::int64_t>(mode) != call % 3) continue;  // builds again after one of the three modes
      const auto again = build_dataset(*disk, options_);
      ASSERT_TRUE(again.ok()) << "call " << call << ": " << to_string(again.error());
      ASSERT_TRUE(verify_dataset(*disk, key).ok());
    }
  }
  EXPECT_GT(whole, 0);
}

// `made_elsewhere` is called once, and only if something is missing; what is still missing is built here.
TEST_F(Build, IsMadeElsewhereOrHere) {
  int asked = 0;
  const BuildOptions plain = options_;
  options_.made_elsewhere = [&] {
    ++asked;
    build_dataset(*out_, plain).value();
    return true;
  };
  EXPECT_TRUE(build().built.empty());
  EXPECT_EQ(asked, 1);
  build();
  EXPECT_EQ(asked, 1);
  options_.sequence_length = 64;
  options_.made_elsewhere = [&] { return ++asked > 0; };  // it returns true, but nothing was built
  EXPECT_EQ(build().built, (std::vector<std::string>{"training packing", "held-out packing"}));
  EXPECT_EQ(asked, 2);
}

TEST_F(Build, AFullDiskIsSaidAndLeavesNoDataset) {
  FaultyStore store;
  store.limit_space(Bytes(60'000));
  EXPECT_EQ(build_dataset(store, options_).error().kind, ErrorKind::no_space);
  EXPECT_TRUE(list_datasets(store)->empty());
}

TEST_F(Build, AnErrorInTheTextLeavesNoDataset) {
  std::string text;
  for (const std::string& line : made_up_documents(2000, 5)) text += line + "\n";
  write_whole(*texts_, "b.txt", text + "bad \xFF\n").value();
  const Error refused = build_dataset(*out_, options_).error();
  EXPECT_EQ(refused.where, (Where{"b.txt", 2001, 0}));
  EXPECT_TRUE(list_datasets(*out_)->empty());
}

}  // namespace
}  // namespace systole

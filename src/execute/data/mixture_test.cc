// Mixtures of built datasets, and the laws that hold for the rows that readers deliver of them.

#include "execute/data/mixture.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "execute/data/testing/made_up_text.h"
#include "ground/store/testing/faulty.h"

namespace systole {
namespace {

class Mixed : public testing::Test {
 protected:
  Mixed() {
    put("wiki.txt", 600, 1);
    put("code.txt", 300, 2);
    put("books.txt", 100, 3);
  }

  void put(const std::string& path, std::size_t documents, std::uint64_t seed) {
    std::string text;
    for (const std::string& line : made_up_documents(documents, seed)) text += line + "\n";
    write_whole(*texts_, path, text).value();
  }

  BuildOptions build_of(const std::string& name) const {
    BuildOptions build;
    build.train = {texts_.get(), {name + ".txt"}, ""};
    build.held_out_fraction = 0.1;
    build.may_hold_none_out = true;
    build.tokenizer.vocabulary = 350;
    build.sequence_length = 32;
    return build;
  }

  // As a run prepares it.
  JoinedDatasets join(const MixtureOptions& options, const std::optional<std::string>& model = {}) {
    std::vector<BuildOptions> builds;
    std::vector<DatasetInputs> texts;
    for (const MixtureOptions::Source& source : options.sources) builds.push_back(build_of(source.name));
    for (BuildOptions& build : builds) {
      build.tokenizer_model = model;
      texts.push_back(dataset_inputs(build).value());
    }
    if (!model) {
      const std::string trained = train_on_sources(builds, options).value().model();
      for (BuildOptions& build : builds) build.tokenizer_model = trained;
    }
    std::vector<Dataset> datasets;
    for (const BuildOptions& build : builds) datasets.push_back(build_dataset(*out_, build).value());
    return join_datasets(std::move(datasets), options, mixture_inputs(options, texts), true).value();
  }

  static MixtureOptions two() { return {.sources = {{"wiki", 3, {}}, {"code", 1, {}}}}; }

  std::unique_ptr<Store> texts_ = make_memory_store();
  std::unique_ptr<Store> out_ = make_memory_store();
};

RowReaderOptions options_of(const JoinedDatasets& data, std::int64_t batch) {
  RowReaderOptions options;
  options.batch_rows = batch;
  options.mixture = data.mixture.order;
  return options;
}

// The rows that a reader delivers, each as the hash of its tokens.
std::vector<std::uint64_t> rows_of(const Batch& batch) {
  const std::size_t length = batch.tokens.size() / static_cast<std::size_t>(batch.rows);
  std::vector<std::uint64_t> rows;
  for (std::size_t r = 0; r < static_cast<std::size_t>(batch.rows); ++r)
    rows.push_back(hash64(std::as_bytes(batch.tokens.subspan(r * length, length))));
  return rows;
}

std::vector<std::uint64_t> delivered(const JoinedDatasets& data, std::int64_t batch, int batches) {
  RowReader reader = RowReader::open(data.dataset.train, options_of(data, batch)).value();
  std::vector<std::uint64_t> all;
  for (int b = 0; b < batches; ++b) std::ranges::copy(rows_of(*reader.next().value()), std::back_inserter(all));
  return all;
}

TEST_F(Mixed, ResumeIsExactThreeTimesWithinAnEpoch) {
  MixtureOptions options = two();
  options.schedule = {{0, {3, 1}}, {150, {1, 3}}};
  for (MixtureOptions::Source& source : options.sources) source.weight.reset();
  const JoinedDatasets data = join(options);
  const std::vector<std::uint64_t> whole = delivered(data, 8, 84);
  ASSERT_GT(data.mixture.order->rows(), 352) << "four of the stops are within an epoch, the end is in the next";
  std::vector<std::uint64_t> parts;
  RowCursor at;
  for (const int batches : {3, 7, 9, 25, 40}) {
    RowReader reader = RowReader::open(data.dataset.train, options_of(data, 8), at).value();
    EXPECT_EQ(at.epoch, 0);
    for (int b = 0; b < batches; ++b) std::ranges::copy(rows_of(*reader.next().value()), std::back_inserter(parts));
    at = reader.cursor();
  }
  EXPECT_EQ(at.epoch, 1);
  EXPECT_EQ(parts, whole);
}

TEST_F(Mixed, AReaderDeliversTheRowsOfTheOrder) {
  const JoinedDatasets data = join(two());
  RowReader reader = RowReader::open(data.dataset.train, {.batch_rows = 1, .pass = RowPass::once}).value();
  std::vector<std::uint64_t> stored;
  while (const Batch* batch = reader.next().value()) stored.push_back(rows_of(*batch)[0]);
  const std::vector<std::uint64_t> rows = delivered(data, 8, 84);
  ASSERT_GT(static_cast<std::int64_t>(rows.size()), data.mixture.order->rows()) << "into the second epoch";
  for (std::size_t i = 0; i < rows.size(); ++i)
    ASSERT_EQ(rows[i], stored[static_cast<std::size_t>(data.mixture.order->joined_row(static_cast<std::int64_t>(i)))]);
}

TEST_F(Mixed, TheSameRowsOn1And2And3And8Ranks) {
  const JoinedDatasets data = join(two());
  constexpr std::int64_t kStep = 24;
  const std::vector<std::uint64_t> whole = delivered(data, kStep, 20);
  for (const std::int64_t ranks : {2, 3, 8}) {
    std::vector<std::uint64_t> all(whole.size());
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
      RowReaderOptions options = options_of(data, kStep / ranks);
      options.step_rows = kStep;
      options.first_row = rank * kStep / ranks;
      RowReader reader = RowReader::open(data.dataset.train, options).value();
      for (std::size_t b = 0; b < 20; ++b)
        std::ranges::copy(rows_of(*reader.next().value()),
                          all.begin() + static_cast<std::ptrdiff_t>(b * kStep) + options.first_row);
    }
    EXPECT_EQ(all, whole) << ranks << " ranks";
  }
}

TEST_F(Mixed, WeightsCountTokensNotRows) {
  const JoinedDatasets data = join(two());
  const std::vector<double> drawn = data.mixture.drawn(data.mixture.order->drawn(data.mixture.order->rows() / 64 * 64));
  EXPECT_NEAR(drawn[0], 0.75, 0.01);
  EXPECT_NEAR(drawn[1], 0.25, 0.01);
  MixtureOptions by_size = two();
  for (MixtureOptions::Source& source : by_size.sources) source.weight.reset();
  by_size.by = MixtureUnit::documents;
  by_size.temperature = 2;
  const JoinedDatasets even = join(by_size);
  const double wiki = std::sqrt(static_cast<double>(even.mixture.parts[0].manifest.train.documents)),
               code = std::sqrt(static_cast<double>(even.mixture.parts[1].manifest.train.documents));
  EXPECT_NEAR(even.mixture.drawn(even.mixture.order->drawn(64 * 20))[0], wiki / (wiki + code), 0.01);
}

TEST_F(Mixed, EverySourceHoldsOutByHashAndTheFirstBatchesAreOfAll) {
  const JoinedDatasets data = join(two());
  std::int64_t documents = 0;
  for (const Mixture::Part& part : data.mixture.parts) {
    EXPECT_GT(part.manifest.held_out.documents, 10);
    documents += part.manifest.held_out.documents;
  }
  EXPECT_EQ(data.dataset.manifest.held_out.documents, documents);
  // All rows once, each batch of one source, and their tokens and bytes are those of the parts.
  const Mixture::HeldOutPass pass = data.mixture.held_out_pass(4);
  RowReaderOptions once{.batch_rows = 4, .pass = RowPass::once};
  once.once_rows = std::make_shared<const std::vector<std::int64_t>>(pass.rows);
  RowReader reader = RowReader::open(data.dataset.held_out, once).value();
  std::vector<std::int64_t> labels(2);
  std::int64_t bytes = 0, rows = 0;
  std::size_t batches = 0;
  while (const Batch* batch = reader.next().value()) {
    labels[pass.sources.at(batches++)] += batch->label_count;
    bytes += batch->bytes;
    rows += batch->rows;
  }
  EXPECT_EQ(batches, pass.sources.size());
  EXPECT_EQ(data.mixture.held_out_batches(4), std::ssize(pass.sources));
  for (std::size_t s = 0; s < 2; ++s) EXPECT_EQ(labels[s], data.mixture.parts[s].manifest.held_out.tokens);
  EXPECT_EQ(bytes, data.dataset.manifest.held_out.bytes);
  EXPECT_EQ(rows, data.dataset.held_out->packing.rows());
  EXPECT_EQ(std::set<std::size_t>(pass.sources.begin(), pass.sources.begin() + 4).size(), 2u)
      << "the first batches are of one source";
}

TEST_F(Mixed, ASourceAddedInTheMiddleRebuildsNoOther) {
  const std::string model = join(two()).dataset.tokenizer.model();
  const JoinedDatasets before = join(two(), model);
  EXPECT_TRUE(before.dataset.built.empty()) << "the tokenizer's content decides, not where it comes from";
  MixtureOptions three = two();
  three.sources.insert(three.sources.begin() + 1, {"books", 1, {}});
  const JoinedDatasets after = join(three, model);
  EXPECT_FALSE(after.dataset.built.empty());
  for (const std::string& what : after.dataset.built) EXPECT_TRUE(what.ends_with(" of books")) << what;
  EXPECT_EQ(after.mixture.parts[0].manifest.key, before.mixture.parts[0].manifest.key);
  EXPECT_NE(after.dataset.manifest.key, before.dataset.manifest.key);
  EXPECT_EQ(other_mixture(before.dataset.manifest.inputs, after.dataset.manifest.inputs), "the source 'books' is new");
}

TEST_F(Mixed, WhatDiffersIsTold) {
  const std::vector<DatasetInputs> texts{{"", "aa", {}}, {"", "bb", {}}}, other{{"", "aa", {}}, {"", "cc", {}}};
  MixtureOptions heavier = two();
  heavier.sources[0].weight = 4;
  const std::string then = mixture_inputs(two(), texts).text;
  EXPECT_EQ(other_mixture(then, mixture_inputs(heavier, texts).text),
            "the source 'wiki' is now text aa weight 4, and was text aa weight 3");
  EXPECT_EQ(other_mixture(then, mixture_inputs(two(), other).text),
            "the source 'code' is now text cc weight 1, and was text bb weight 1");
  EXPECT_EQ(other_mixture(then, then), "");
}

TEST_F(Mixed, AReaderRefusesAStepThatTheMixtureCannotFill) {
  MixtureOptions options = two();
  options.sources[1].epochs = 1;
  options.exhausted = Exhausted::stop;
  const JoinedDatasets data = join(options);
  const std::int64_t steps = *data.mixture.order->end() / 8;
  EXPECT_EQ(delivered(data, 8, static_cast<int>(steps)).size(), static_cast<std::size_t>(steps * 8));
  RowReader reader = RowReader::open(data.dataset.train, options_of(data, 8)).value();
  for (std::int64_t step = 0; step < steps; ++step) ASSERT_TRUE(reader.next().ok());
  const auto after = reader.next();
  ASSERT_FALSE(after.ok());
  EXPECT_NE(after.error().message.find("the source 'code' has no more"), std::string::npos) << after.error().message;
}

}  // namespace
}  // namespace systole

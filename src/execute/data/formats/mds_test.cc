#include "execute/data/formats/mds.h"

#include <gtest/gtest.h>

#include "execute/data/formats/testing/some_records.h"
#include "ground/base/philox.h"
#include "ground/store/testing/faulty.h"

namespace systole {
namespace {

class Mds : public testing::Test {
 protected:
  static std::vector<Fields> samples(int count) {
    PhiloxStream random(9);
    std::vector<Fields> made;
    for (int i = 0; i < count; ++i) {
      std::string text(random.below(300), 'a');
      for (char& c : text) c = static_cast<char>('a' + random.below(20));
      made.push_back({{"id", std::to_string(i - 5)}, {"score", fmt::format("{}", i / 8.0)}, {"text", text}});
    }
    return made;
  }
  void write(const std::string& folder, const std::vector<Fields>& made, Compression compression = Compression::none) {
    MdsOptions options{{{"text", "str"}, {"id", "int"}, {"score", "float64"}}, compression, 4000};
    const auto writer = create_mds(*store_, folder, std::move(options)).value();
    for (const Fields& fields : made) {
      std::vector<RecordField> views;
      for (const auto& [name, bytes] : fields) views.push_back({name, bytes});
      writer->add_fields(views).value();
    }
    writer->finish().value();
  }
  std::unique_ptr<RecordReader> open(const std::string& path) { return open_mds({store_.get(), path, path}).value(); }
  std::string message(const std::string& path) { return first_error(open_mds({store_.get(), path, path})); }
  std::unique_ptr<Store> store_ = make_memory_store();
};

TEST_F(Mds, ReadsBackWhatItWroteInOrderAndAtRandom) {
  const std::vector<Fields> made = samples(200);
  write("plain", made);
  write("packed", made, Compression::zstd);
  EXPECT_FALSE(store_->exists("packed/shard.00001.mds").value());
  for (const char* path : {"plain", "plain/index.json", "packed"}) {
    const auto reader = open(path);
    EXPECT_EQ(reader->count(), 200);
    EXPECT_EQ(all_fields(*reader), made) << path;
    DataRecord record;
    for (const int i : {199, 0, 100, 101, 3}) {
      reader->read(i, record).value();
      EXPECT_EQ(fields_of(*reader, record), made[static_cast<std::size_t>(i)]) << i;
    }
    std::vector<std::string> ids(4);
    const std::vector<std::int64_t> group{150, 3, 150, 77};
    const auto take = [&](std::size_t i, const DataRecord& one) -> Status {
      ids[i] = std::string(TRY(reader->field(one, "id")));
      return Done{};
    };
    reader->read_group(group, take).value();
    EXPECT_EQ(ids, (std::vector<std::string>{"145", "-2", "145", "72"}));
  }
}

TEST_F(Mds, AShardAloneIsComplete) {
  const std::vector<Fields> made = samples(60);
  write("plain", made);
  write("packed", made, Compression::zstd);
  for (const auto& [folder, ending] : {std::pair("plain", ".mds"), std::pair("packed", ".mds.zstd")}) {
    std::vector<Fields> found;
    for (int i = 0; store_->exists(fmt::format("{}/shard.{:05}{}", folder, i, ending)).value(); ++i)
      for (Fields& one : all_fields(*open(fmt::format("{}/shard.{:05}{}", folder, i, ending))))
        found.push_back(std::move(one));
    EXPECT_EQ(found, made);
  }
}

TEST_F(Mds, LyingAndDamagedFilesAreNamed) {
  write("d", samples(60));
  const std::string index = read_text(*store_, "d/index.json").value();
  const std::string shard = read_text(*store_, "d/shard.00000.mds").value();
  const auto with_shard = [&](const std::string& bytes) {
    write_whole(*store_, "d/shard.00000.mds", bytes).value();
    const std::string said = message("d");
    write_whole(*store_, "d/shard.00000.mds", shard).value();
    return said;
  };
  const auto with_index = [&](std::string_view from, std::string_view to) {
    std::string changed = index;
    const std::size_t at = changed.find(from);
    EXPECT_NE(at, changed.npos) << from;
    write_whole(*store_, "d/index.json", changed.replace(at, from.size(), to)).value();
    return message("d");
  };
  EXPECT_EQ(with_shard(shard), "");
  EXPECT_NE(
      with_shard(shard.substr(0, 900)).find("d/shard.00000.mds: error: the file has 900 bytes, and index.json says"),
      std::string::npos);
  std::string bad = shard;
  bad[9] = '\x7f';  // an offset
  EXPECT_NE(with_shard(bad).find("is not in the file behind the one before"), std::string::npos);
  bad = shard;
  bad[0] ^= 1;
  EXPECT_NE(with_shard(bad).find("and index.json says"), std::string::npos);
  EXPECT_EQ(with_index("\"int\"", "\"pkl\""), "");
  DataRecord record;
  const auto pickles = open("d");
  ASSERT_TRUE(pickles->next(record).value());
  EXPECT_EQ(pickles->field(record, "id").error().kind, ErrorKind::unsupported);
  EXPECT_EQ(with_index("\"int\"", "\"int128\""), "");  // of a version to come
  const auto unknown = open("d");
  ASSERT_TRUE(unknown->next(record).value());
  EXPECT_NE(unknown->field(record, "id").error().message.find("the encoding 'int128' is not known"), std::string::npos);
  EXPECT_NE(with_index("\"version\": 2", "\"version\": 3").find("version 2 of mds is read"), std::string::npos);
  EXPECT_NE(with_index("\"raw_data\": {", "\"raw_data\": {\"basename\": \"../x\", \"no\": {").size(), 0u);
  EXPECT_NE(with_index("shard.00001.mds", "../secret.mds").size(), 0u);
  write_whole(*store_, "d/index.json", std::string_view("[]")).value();
  EXPECT_NE(message("d").size(), 0u);
  write_whole(*store_, "none.mds", std::string_view("not a shard at all, is it")).value();
  EXPECT_NE(message("none.mds").find("no shard of MDS"), std::string::npos);
}

// A shard of a million samples would be fetched a million times.
TEST_F(Mds, AShardThatCannotBeOpenedIsTriedOnce) {
  write("d", samples(60));
  const std::string shard = read_text(*store_, "d/shard.00000.mds").value();
  write_whole(*store_, "d/shard.00000.mds", shard.substr(0, 900)).value();
  const auto reader = open("d");
  DataRecord record;
  const std::string said = to_string(reader->next(record).error());
  write_whole(*store_, "d/shard.00000.mds", shard).value();
  ASSERT_TRUE(reader->goes_on());
  EXPECT_EQ(to_string(reader->next(record).error()), said);
}

// What passes, as a disk that does not answer, is no fault of the shard.
TEST_F(Mds, AShardThatCouldNotBeReadIsTriedAgain) {
  const std::vector<Fields> made = samples(60);
  write("d", made);
  FaultyStore disk(*store_);
  const auto reader = open_mds({&disk, "d", "d"}).value();
  disk.inject(ReadFault{disk.reads() + 1, EIO});
  DataRecord record;
  EXPECT_EQ(reader->next(record).error().kind, ErrorKind::io);
  EXPECT_FALSE(reader->goes_on());  // or `on_bad_record: skip` would pass over a good sample
  reader->read(0, record).value();
  EXPECT_EQ(fields_of(*reader, record), made[0]);
}

TEST_F(Mds, TheWriterRefusesWhatWouldNotComeBack) {
  EXPECT_EQ(create_mds(*store_, "p", {.columns = {{"a", "pkl"}}}).error().kind, ErrorKind::unsupported);
  EXPECT_EQ(create_mds(*store_, "p", {.columns = {{"a\n", "str"}}}).error().kind, ErrorKind::invalid);
  const auto writer = create_mds(*store_, "w", {.columns = {{"n", "int"}}}).value();
  const RecordField number{"n", "12x"}, other{"m", "1"};
  EXPECT_EQ(writer->add_fields(std::span(&number, 1)).error().message,
            "record 0: column 'n': '12x' is no number of the column's type");
  EXPECT_FALSE(writer->add_fields(std::span(&other, 1)).ok());
  write("once", samples(1));
  EXPECT_EQ(create_mds(*store_, "once").error().kind, ErrorKind::exists);
}

TEST_F(Mds, TheWriterTakesAFolderWithNothingButItsOwnLeftovers) {
  // Killed amid its second shard.
  const std::vector<Fields> made = samples(60);
  write("whole", made);
  EXPECT_FALSE(store_->exists("whole/.systole-unfinished").value());
  (void)create_mds(*store_, "d").value();
  for (const char* left : {"d/shard.00000.mds", "d/shard.00099.mds.zstd", "d/shard.00001.mds.tmp"})
    write_whole(*store_, left, "half").value();
  write("d", made);
  EXPECT_EQ(all_fields(*open("d")), made);
  EXPECT_EQ(store_->list("d").value(), store_->list("whole").value());

  const auto refused = [&](const std::string& folder, const std::string& name) {
    const Result<std::unique_ptr<RecordWriter>> created = create_mds(*store_, folder);
    return !created.ok() && created.error().kind == ErrorKind::exists &&
           created.error().message == fmt::format("the folder is not empty: it has '{}'", name);
  };
  store_->make_dirs("mine").value();
  write_whole(*store_, "mine/shard.00000.mds", "a shard whose index is elsewhere").value();
  EXPECT_TRUE(refused("mine", "shard.00000.mds"));
  EXPECT_EQ(read_text(*store_, "mine/shard.00000.mds").value(), "a shard whose index is elsewhere");
  (void)create_mds(*store_, "begun").value();
  store_->make_dirs("begun/more").value();
  EXPECT_TRUE(refused("begun", "more/"));
}

}  // namespace
}  // namespace systole

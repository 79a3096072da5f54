// WebDataset, MDS and numpy files beside the Python libraries of these formats, which tools/oracles/install puts into the
// build folder: what they write is read the same, what we write of it is the same to the byte where nothing is
// compressed, and they read it the same.

#include <gtest/gtest.h>

#include <filesystem>
#include <iostream>
#include <map>
#include <sstream>

#include "execute/data/formats/mds.h"
#include "execute/data/formats/numpy.h"
#include "execute/data/formats/webdataset.h"
#include "execute/data/testing/oracle.h"
#include "ground/store/sha256.h"

namespace systole {
namespace {

const Oracle oracle("archives");

using Hashes = std::map<std::string, std::string>;
Hashes hashes_of(const std::string& lines) {
  Hashes found;
  std::istringstream text(lines);
  for (std::string name, hash; text >> name >> hash;) found[name] = hash;
  return found;
}

// Of the fields of all records, each behind its length.
std::string hash_of(RecordReader& reader, const std::vector<std::string>& fields) {
  std::string all;
  for (DataRecord record; reader.next(record).value();) {
    for (const std::string& name : fields) {
      const std::string_view bytes = reader.field(record, name).value();
      const std::uint64_t size = bytes.size();
      all.append(reinterpret_cast<const char*>(&size), sizeof size);
      all += bytes;
    }
  }
  return sha256_of(all);
}

void copy(RecordReader& reader, RecordWriter& writer) {
  for (DataRecord record; reader.next(record).value();) {
    std::vector<std::string> names = reader.field_names(), values;
    std::vector<RecordField> fields;
    for (const std::string& name : names) values.emplace_back(reader.field(record, name).value());
    for (std::size_t i = 0; i < names.size(); ++i) fields.push_back({names[i], values[i]});
    writer.add_fields(fields).value();
  }
  writer.finish().value();
}

TEST(ArchivesOracle, TheSameAsTheirLibraries) {
  SKIP_WITHOUT(oracle);
  const std::string folder = SYSTOLE_BINARY_DIR "/archives_oracle";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  const Captured written = oracle.run_script("archives_oracle.py", {"write", folder});
  ASSERT_TRUE(written.exit.ok()) << written.err;
  const Hashes theirs = hashes_of(written.out);
  ASSERT_EQ(theirs.size(), 8u) << written.out;

  const auto store = open_posix_store(folder).value();
  const auto file = [&](const std::string& name) { return RecordFile{store.get(), name, name}; };
  for (const auto& [name, ours] : {std::pair("w.tar", "ours.tar"), std::pair("w.tar.gz", "ours.tar.gz")}) {
    EXPECT_EQ(hash_of(*open_webdataset(file(name)).value(), {"__key__", "json", "txt"}), theirs.at(name)) << name;
    copy(*open_webdataset(file(name)).value(), *create_webdataset(*store, ours).value());
  }
  EXPECT_TRUE(read_text(*store, "ours.tar").value() == read_text(*store, "w.tar").value());

  for (const auto& [name, ours] : {std::pair("mds", "ours"), std::pair("packed", "ours_packed")}) {
    EXPECT_EQ(hash_of(*open_mds(file(name)).value(), {"id", "text"}), theirs.at(name)) << name;
    MdsOptions options{{{"id", "int"}, {"score", "float64"}, {"text", "str"}, {"meta", "json"}}, {}, 20000};
    options.compression = std::string(name) == "packed" ? Compression::zstd : Compression::none;
    copy(*open_mds(file(name)).value(), *create_mds(*store, ours, options).value());
  }
  for (const std::string& name : store->list("mds").value())
    EXPECT_TRUE(read_text(*store, "ours/" + name).value() == read_text(*store, "mds/" + name).value()) << name;

  for (const char* name : {"a.npy", "texts.npy"})
    EXPECT_EQ(hash_of(*open_npy(file(name)).value(), {"."}), theirs.at(name));
  for (const char* name : {"a.npz", "packed.npz"})
    EXPECT_EQ(hash_of(*open_npz(file(name)).value(), {"x", "y"}), theirs.at(name)) << name;

  const Captured read = oracle.run_script("archives_oracle.py", {"read", folder});
  ASSERT_TRUE(read.exit.ok()) << read.err;
  const Hashes back = hashes_of(read.out);
  EXPECT_EQ(back.at("ours.tar"), theirs.at("w.tar"));
  EXPECT_EQ(back.at("ours.tar.gz"), theirs.at("w.tar"));
  EXPECT_EQ(back.at("ours"), theirs.at("mds"));
  EXPECT_EQ(back.at("ours_packed"), theirs.at("mds"));
}

}  // namespace
}  // namespace systole

// Records a second of each format of files of records, and texts a second of the tokenizer, on one thread and from the
// page cache: 65,536 records of words, 1.45 kB each.
//
//   data_bench           every case on files in a folder that it removes: the fastest of some runs, since others may
//                        use the machine
//   data_bench FOLDER    makes the files that FOLDER lacks, prints {"ready": true}, and then answers each line that
//                        names a case with {"records": n, "bytes": n, "seconds": s}: bench/data_compare.py lets other
//                        libraries read the same files in turns. The case `bpe NAME` encodes the texts of
//                        FOLDER/texts.bin (of each a u32 with its size, then its bytes) by FOLDER/NAME.json.
//
// The cases `jpeg decode` and `jpeg train` are of photos.bin, laid out alike: 64 JPEG of 500 x 375 made-up pixels, 65 and
// 35 kB, decoded, or made f32 of 224 x 224 with a random crop and flip.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <functional>
#include <iostream>
#include <numeric>
#include <random>

#include "execute/data/formats/array_record.h"
#include "execute/data/formats/csv_records.h"
#include "execute/data/formats/mds.h"
#include "execute/data/formats/parquet/records.h"
#include "execute/data/formats/record_file.h"
#include "execute/data/formats/tfrecord.h"
#include "execute/data/formats/webdataset.h"
#include "execute/data/images/testing/image_files.h"
#include "execute/data/images/transform.h"
#include "execute/data/tokenizer.h"

namespace systole {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kRecords = 65536;
constexpr std::size_t kGroup = 256;
constexpr int kRuns = 5;
constexpr const char* kField = "txt";
constexpr double kFine = 0.78, kCoarse = 0.6;  // of photographs: 65 and 35 kB

// Words of a made-up language, as often as Zipf says: zstd halves them, as it does English.
std::string made_up(std::mt19937& random, const std::vector<std::string>& words) {
  std::string record;
  const std::size_t size = 1200 + random() % 496;
  while (record.size() < size) {
    const double u = static_cast<double>(random()) / 4294967296.0;
    record += words[static_cast<std::size_t>(std::pow(static_cast<double>(words.size()), u)) - 1];
    record += random() % 12 == 0 ? ". " : " ";
  }
  record.resize(size);
  return record;
}

std::vector<std::string> made_up_records() {
  std::mt19937 random(11);
  std::vector<std::string> words(20'000), records;
  for (std::string& word : words) {
    word.resize(2 + random() % 9);
    for (char& letter : word) letter = static_cast<char>('a' + (random() % 26) * (random() % 26) / 26);
  }
  for (std::int64_t i = 0; i < kRecords; ++i) records.push_back(made_up(random, words));
  return records;
}

// Photographs, as far as the decoder's time goes.
void make_photos(Store& store) {
  if (store.exists("photos.bin").value()) return;
  std::string photos;
  for (std::uint64_t i = 0; i < 64; ++i) {
    const std::string file = jpeg_of(some_picture(500, 375, 3, i, i % 2 == 0 ? kFine : kCoarse));
    const auto size = static_cast<std::uint32_t>(file.size());
    photos.append(reinterpret_cast<const char*>(&size), sizeof size) += file;
  }
  write_whole(store, "photos.bin", photos).value();
}

// Makes the files that are not there yet.
void make_files(Store& store) {
  std::vector<std::string> records;
  const auto write = [&](const std::string& name, bool fields, auto create) {
    if (store.exists(name == "mds" ? "mds/index.json" : name).value()) return;  // what is there last
    if (records.empty()) records = made_up_records();
    const std::unique_ptr<RecordWriter> writer = create(name).value();
    for (const std::string& record : records) {
      const RecordField field{kField, record};
      (fields ? writer->add_fields({&field, 1}) : writer->add(record)).value();
    }
    writer->finish().value();
  };
  const auto arrays = [&](ArrayRecordOptions options) {
    return [&store, options](const std::string& name) { return create_array_record(store, name, options); };
  };
  write("words.tfrecord", false, [&](const std::string& name) { return create_tfrecord(store, name); });
  write("zstd-1.array_record", false, arrays({1, 3, false}));
  write("plain-1.array_record", false, arrays({1, 0, false}));
  write("zstd-256.array_record", false, arrays({256, 3, false}));
  write("words.tar", true, [&](const std::string& name) { return create_webdataset(store, name); });
  write("words.tar.zst", true, [&](const std::string& name) { return create_webdataset(store, name); });
  write("mds", true, [&](const std::string& name) { return create_mds(store, name, {.columns = {{kField, "str"}}}); });
  write("words.csv", true, [&](const std::string& name) { return create_csv(store, name); });
  write("words.parquet", true, [&](const std::string& name) { return parquet::create_records(store, name); });
}

const std::vector<std::int64_t>& shuffled() {
  static const std::vector<std::int64_t> order = [] {
    std::vector<std::int64_t> made(static_cast<std::size_t>(kRecords));
    std::mt19937 random(5);
    std::iota(made.begin(), made.end(), 0);
    std::shuffle(made.begin(), made.end(), random);
    return made;
  }();
  return order;
}

struct Measured {
  std::int64_t records = 0, bytes = 0;
  double seconds = 0;
};

struct Source {
  Store& store;
  std::string path, field;

  std::unique_ptr<RecordReader> open(bool index) const {
    const RecordFile file{&store, path, path};
    if (is_tar_name(path)) return open_webdataset(file, {.index = index}).value();
    return open_records(file, record_format_of(path).value_or(RecordFormat::mds)).value();
  }
};

void in_order(const Source& source, Measured& measured) {
  const auto reader = source.open(false);
  for (DataRecord record; reader->next(record).value(); ++measured.records)
    measured.bytes += static_cast<std::int64_t>(reader->field(record, source.field).value().size());
}

void at_random(const Source& source, RecordReader& reader, Measured& measured) {
  DataRecord record;
  for (const std::int64_t index : shuffled()) {
    reader.read(index, record).value();
    measured.bytes += static_cast<std::int64_t>(reader.field(record, source.field).value().size());
    ++measured.records;
  }
}

// Batches as a loader makes them: each record is copied to its place.
void in_batches(const Source& source, RecordReader& reader, Measured& measured) {
  std::vector<std::string> batch(kGroup);
  const auto each = [&](std::size_t place, const DataRecord& record) -> Status {
    batch[place].assign(TRY(reader.field(record, source.field)));
    measured.bytes += static_cast<std::int64_t>(batch[place].size());
    ++measured.records;
    return Done{};
  };
  const std::span<const std::int64_t> order = shuffled();
  for (std::size_t i = 0; i < order.size(); i += kGroup) reader.read_group(order.subspan(i, kGroup), each).value();
}

// `run` once. What it takes to open a file for random access is not counted.
template <typename Run>
Measured timed(Run run) {
  Measured measured;
  const auto begin = Clock::now();
  run(measured);
  measured.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return measured;
}

// What is in a file of texts or photographs.
std::vector<std::string> parts_of(const std::string& file) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at < file.size(); at += parts.back().size()) {
    std::uint32_t size = 0;
    std::memcpy(&size, file.data() + at, sizeof size);
    at += sizeof size;
    parts.push_back(file.substr(at, size));
  }
  return parts;
}

Measured of_photos(Store& store, std::string_view how) {
  const std::vector<std::string> photos = parts_of(read_text(store, "photos.bin").value());
  ImageTransform transform = ImageTransform::create({}).value();
  std::vector<float> values(transform.values());
  return timed([&](Measured& measured) {
    for (std::uint64_t epoch = 0; epoch < 4; ++epoch) {
      for (const std::string& photo : photos) {
        const auto row = static_cast<std::uint64_t>(measured.records++);
        if (how == "decode") decode_image(photo).value();
        if (how == "train") transform.decode(photo, {epoch, row}, values).value();
        measured.bytes += static_cast<std::int64_t>(photo.size());
      }
    }
  });
}

Measured encoded(Store& store, const std::string& tokenizer_name) {
  const Tokenizer tokenizer = Tokenizer::load(read_text(store, tokenizer_name + ".json").value()).value();
  const std::vector<std::string> texts = parts_of(read_text(store, "texts.bin").value());
  Encoder encoder(tokenizer);
  return timed([&](Measured& measured) {
    std::vector<std::int32_t> tokens;
    for (const std::string& text : texts) {
      tokens.clear();
      encoder.encode(text, tokens);
      measured.bytes += static_cast<std::int64_t>(text.size());
      ++measured.records;
    }
  });
}

// "words.tar order": the file, and how it is read.
constexpr const char* kCases[] = {"words.tfrecord order",
                                  "zstd-1.array_record order",
                                  "zstd-1.array_record random",
                                  "zstd-1.array_record batch",
                                  "plain-1.array_record order",
                                  "plain-1.array_record random",
                                  "plain-1.array_record batch",
                                  "zstd-256.array_record order",
                                  "words.tar order",
                                  "words.tar random",
                                  "words.tar batch",
                                  "words.tar.zst order",
                                  "mds order",
                                  "mds random",
                                  "mds batch",
                                  "words.csv order",
                                  "words.parquet order",
                                  "jpeg decode",
                                  "jpeg train"};

Measured run_case(Store& store, std::string_view name) {
  const std::size_t space = name.find(' ');
  CHECK(space != name.npos, "no case '{}'", name);
  const std::string path(name.substr(0, space)), how(name.substr(space + 1));
  if (path == "bpe") return encoded(store, how);
  if (path == "jpeg") return of_photos(store, how);
  const bool of_bytes = path.ends_with("record");
  const Source source{store, path, of_bytes ? std::string(kWholeRecord) : kField};
  if (how == "order") return timed([&](Measured& measured) { in_order(source, measured); });
  const auto reader = source.open(true);
  return timed([&](Measured& measured) { (how == "random" ? at_random : in_batches)(source, *reader, measured); });
}

void print_all(Store& store) {
  for (const char* name : kCases) {
    double records = 0, bytes = 0;
    for (int i = 0; i < kRuns; ++i) {
      const Measured measured = run_case(store, name);
      records = std::max(records, static_cast<double>(measured.records) / measured.seconds);
      bytes = std::max(bytes, static_cast<double>(measured.bytes) / measured.seconds);
    }
    fmt::print("{:30} {:10.0f} records/s {:6.2f} GB/s\n", name, records, bytes / 1e9);
  }
}

void answer(Store& store) {
  std::cout << "{\"ready\": true}" << std::endl;
  for (std::string name; std::getline(std::cin, name);) {
    const Measured measured = run_case(store, name);
    std::cout << fmt::format(R"({{"records": {}, "bytes": {}, "seconds": {}}})", measured.records, measured.bytes,
                             measured.seconds)
              << std::endl;
  }
}

}  // namespace
}  // namespace systole

int main(int count, char** words) {
  namespace fs = std::filesystem;
  std::string own = (fs::temp_directory_path() / "systole-data-bench-XXXXXX").string();
  if (count < 2) CHECK(::mkdtemp(own.data()) != nullptr, "no folder '{}'", own);
  const fs::path folder = count > 1 ? fs::path(words[1]) : fs::path(own);
  fs::create_directories(folder);
  const auto store = systole::open_posix_store(folder.string()).value();
  systole::make_files(*store);
  systole::make_photos(*store);
  if (count > 1) {
    systole::answer(*store);
  } else {
    systole::print_all(*store);
    fs::remove_all(folder);
  }
  return 0;
}

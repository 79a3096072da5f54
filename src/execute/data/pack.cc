#include "execute/data/pack.h"

#include <cctype>

#include "execute/data/formats/csv_records.h"
#include "execute/data/formats/mds.h"
#include "execute/data/formats/mds_index.h"
#include "execute/data/formats/parquet/records.h"
#include "execute/data/formats/webdataset.h"

namespace systole {
namespace {

constexpr std::int64_t kProgressEvery = 1024;  // records

// The field that documents are written to.
std::string field_of(const PackOptions& options) {
  if (options.text.field != kWholeRecord && options.text.field != "text") return options.text.field;
  return options.to == RecordFormat::webdataset ? "txt" : "text";
}

// What was written: the file, or the index and the shards that it names.
Result<Bytes> size_of(Store& store, const std::string& out, RecordFormat format) {
  if (format != RecordFormat::mds) return store.size(out);
  const std::string index = out + "/index.json";
  Bytes sum = TRY(store.size(index));
  for (const MdsShard& shard : TRY(read_mds_index({&store, index, index})))
    sum += Bytes(shard.zip.empty() ? shard.raw_bytes : shard.zip_bytes);
  return sum;
}

Result<std::unique_ptr<RecordWriter>> writer_for(Store& store, const std::string& out, const PackOptions& options) {
  switch (options.to) {
    case RecordFormat::tfrecord: return create_tfrecord(store, out, options.compression);
    case RecordFormat::webdataset: return create_webdataset(store, out);
    case RecordFormat::csv: return create_csv(store, out);
    case RecordFormat::parquet: return parquet::create_records(store, out);
    case RecordFormat::mds: {
      MdsOptions mds{.compression = options.zipped ? Compression::zstd : Compression::none};
      if (!options.whole_files && !options.plain) mds.columns.emplace_back(field_of(options), "str");
      if (!options.whole_files && !options.text.target.empty()) mds.columns.emplace_back(options.text.target, "str");
      return create_mds(store, out, std::move(mds));
    }
    default: return create_array_record(store, out, options.array);
  }
}

class Packing {
 public:
  Packing(RecordWriter& writer, const PackOptions& options) : writer_(writer), options_(options) {}

  Status documents(const TextFiles& files) {
    TextReader reader(files, options_.text);
    const std::string name = field_of(options_);
    for (Document document; TRY(reader.next(document));) {
      const RecordField fields[] = {{name, document.text}, {options_.text.target, document.target}};
      const std::size_t count = options_.text.target.empty() ? 1 : 2;
      TRY(add(std::span(fields, count), document.text));
    }
    packed_.files = reader.stats().files;
    packed_.skipped = reader.stats().skipped;
    return Done{};
  }

  Status whole_files(const TextFiles& files) {
    for (const std::string& path : files.paths) {
      Result<std::vector<std::byte>> bytes = read_all(*files.store, path, options_.text.largest_document);
      if (!bytes.ok()) return std::move(bytes).error().at({files.prefix + path});
      const std::string_view data(reinterpret_cast<const char*>(bytes->data()), bytes->size());
      const std::string name = path.substr(path.rfind('/') + 1);
      if (options_.to == RecordFormat::webdataset && !options_.plain) {
        TRY(member(name, std::string(data)));
        ++packed_.files;
        continue;
      }
      const RecordField fields[] = {{kDataField, data}, {kNameField, name}};
      TRY(add(fields, data));
      ++packed_.files;
    }
    return sample();
  }

  const Packed& packed() const { return packed_; }

 private:
  // A file of a sample: files that follow each other and are named alike up to the first dot are one.
  Status member(const std::string& name, std::string data) {
    const std::size_t dot = name.find('.', 1);
    if (dot == name.npos || dot + 1 == name.size())
      return error(ErrorKind::invalid, "'{}' has no ending, which would name it in its sample", name)
          .hinted("leave it out, or rename it");
    if (members_.empty() || name.substr(0, dot) != key_) TRY(sample());
    key_ = name.substr(0, dot);
    std::string ending = name.substr(dot + 1);
    for (char& c : ending) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    members_.emplace_back(std::move(ending), std::move(data));
    return Done{};
  }
  // Writes the sample that was gathered.
  Status sample() {
    if (members_.empty()) return Done{};
    std::vector<RecordField> fields{{"__key__", key_}};
    std::int64_t bytes = 0;
    for (const auto& [ending, data] : members_) {
      fields.push_back({ending, data});
      bytes += static_cast<std::int64_t>(data.size());
    }
    TRY(writer_.add_fields(fields));
    members_.clear();
    count(bytes);
    return Done{};
  }

  void count(std::int64_t bytes) {
    packed_.bytes += Bytes(bytes);
    if (++packed_.records % kProgressEvery == 0 && options_.progress) options_.progress(packed_.bytes);
  }

  Status add(std::span<const RecordField> fields, std::string_view plain) {
    TRY(options_.plain ? writer_.add(plain) : writer_.add_fields(fields));
    count(static_cast<std::int64_t>(plain.size()));
    return Done{};
  }

  RecordWriter& writer_;
  std::string key_;  // of the sample that is gathered
  std::vector<std::pair<std::string, std::string>> members_;
  const PackOptions& options_;
  Packed packed_;
};

}  // namespace

Result<Packed> pack_records(const TextFiles& files, Store& out_store, const std::string& out,
                            const PackOptions& options) {
  if (options.to != RecordFormat::mds && TRY(out_store.exists(out))) {
    return error(ErrorKind::exists, "the file is there already: '{}'", out)
        .hinted("name another file, or remove it first");
  }
  const std::unique_ptr<RecordWriter> writer = TRY(writer_for(out_store, out, options));
  Packing packing(*writer, options);
  TRY(options.whole_files ? packing.whole_files(files) : packing.documents(files));
  if (packing.packed().records == 0)
    return error(ErrorKind::invalid, "the files hold no document").hinted("check the files, and `--document`");
  TRY(writer->finish());
  Packed packed = packing.packed();
  packed.written = TRY(size_of(out_store, out, options.to));
  return packed;
}

}  // namespace systole

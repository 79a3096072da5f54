#include "ground/catalog/image.h"

#include <algorithm>
#include <filesystem>

#include "ground/catalog/tables.h"

namespace systole {
namespace {

constexpr std::string_view kRequired[] = {"name", "tag", "accelerator", "use", "source", "date"};
constexpr std::string_view kOptional[] = {"digest", "cuda", "confidence", "note"};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

const TableColumns kImageColumns{"images", kRequired, kOptional};

bool is_image_digest(std::string_view text) {
  constexpr std::string_view kSha = "sha256:";
  return text.size() == kSha.size() + 64 && text.starts_with(kSha) &&
         text.substr(kSha.size()).find_first_not_of("0123456789abcdef") == text.npos;
}

// "12.1-runtime", "12-slim" and "bookworm" move with each release. "12.15-slim", "1.2.3", "25.10-py3" and "20260918"
// count as fixed, as their makers state: three parts, two that begin with a year, or a date.
bool is_floating_tag(std::string_view tag) {
  for (std::size_t at = 0; at < tag.size();) {
    if (!is_digit(tag[at])) {
      ++at;
      continue;
    }
    std::size_t end = at, dots = 0;
    while (end < tag.size() &&
           (is_digit(tag[end]) || (tag[end] == '.' && end + 1 < tag.size() && is_digit(tag[end + 1])))) {
      dots += tag[end] == '.' ? 1 : 0;
      ++end;
    }
    const std::string_view number = tag.substr(at, end - at);
    const bool date = dots == 0 && number.size() == 8 && number.starts_with("20");
    const bool year = dots == 1 && number.find('.') == 2 && number.substr(0, 2) >= "20";
    if (dots >= 2 || date || year) return false;
    at = end;
  }
  return true;
}

ImageRow read_image(TableRow& row) {
  constexpr std::string_view kKinds[] = {"cpu", "cuda", "tpu"};
  constexpr std::string_view kUses[] = {"program", "model"};
  ImageRow image;
  image.name = row.name("name");
  image.tag = row.name("tag");
  image.digest = row.string("digest");
  image.accelerators = row.list("accelerator");
  image.cuda = row.string("cuda");
  image.for_models = row.one_of("use", kUses) == 1;
  image.dated = row.dated();
  image.note = row.string("note");
  for (const std::string& kind : image.accelerators)
    if (std::ranges::find(kKinds, kind) == std::end(kKinds))
      row.wrong("accelerator", error(ErrorKind::invalid, "'{}' is no kind", kind).hinted("cpu, cuda, tpu"));
  if (!image.digest.empty() && !is_image_digest(image.digest))
    row.wrong("digest", error(ErrorKind::invalid, "'{}' is no digest", image.digest).hinted("sha256: and 64 digits"));
  if (image.digest.empty() && is_floating_tag(image.tag))
    row.wrong("tag", error(ErrorKind::invalid, "'{}' is another image from time to time", image.tag)
                         .hinted("a tag with a whole version or a date, or a digest beside it"));
  return image;
}

namespace {

void read_file(const std::string& name, std::string_view text, bool own, std::vector<ImageRow>& rows,
               std::vector<Error>& errors) {
  const Result<CsvTable> table = CsvTable::read(std::string(text), name);
  if (!table.ok()) return errors.push_back(table.error());
  if (Status fits = table->expect_columns(kRequired, kOptional); !fits.ok())
    return errors.push_back(std::move(fits).error());
  for (std::size_t i = 0; i < table->num_rows(); ++i) {
    TableRow row(*table, i, own, errors);
    ImageRow image = read_image(row);
    std::erase_if(rows, [&](const ImageRow& other) { return own && other.tagged() == image.tagged(); });
    rows.push_back(std::move(image));
  }
}

}  // namespace

Result<std::vector<ImageRow>> catalog_images(std::span<const CatalogFile> own) {
  std::vector<ImageRow> rows;
  std::vector<Error> errors;
  read_file("data/catalog/images.csv", builtin_catalog_table("images"), false, rows, errors);
  for (const CatalogFile& file : own)
    if (const std::string stem = std::filesystem::path(file.name).stem().string();
        stem == "images" || stem.starts_with("images-"))
      read_file(file.name, file.text, true, rows, errors);
  TRY(first_of(std::move(errors)));
  return rows;
}

}  // namespace systole

// How many images of a file of records one thread reads a second, and how many it makes ready for a model.

#include "operate/cli/data_probe_images.h"

#include <cmath>
#include <thread>

#include "execute/data/images/image.h"
#include "execute/data/images/image_probe.h"
#include "ground/base/counted.h"
#include "ground/base/nearest.h"
#include "ground/base/shell_quoted.h"
#include "ground/draw/text_table.h"
#include "operate/cli/data_cat.h"

namespace systole::cli {
namespace {

constexpr std::size_t kFewestImages = 64, kMostImages = 4096;
constexpr Bytes kMostBytes = 256 * kMiB;

struct ReadImages {
  std::vector<std::string> files;
  Bytes size;
  Seconds time;
};

// The fields of a record that are images.
std::vector<std::string> image_fields(RecordReader& reader, const DataRecord& record) {
  std::vector<std::string> names = reader.field_names();
  if (names.empty()) names.emplace_back(kWholeRecord);
  std::erase_if(names, [&](const std::string& name) {
    const Result<std::string_view> bytes = reader.field(record, name);
    return !bytes.ok() || !image_format_of(*bytes);
  });
  return names;
}

// Says which field is meant, if the record has an image.
Error hinted_image(Error error, const std::string& asked, RecordReader& reader, const DataRecord& record) {
  const std::vector<std::string> images = image_fields(reader, record);
  const std::vector<std::string> near = nearest(asked, images, 1);
  if (images.empty()) return hinted_as("--image", asked, std::move(error));
  return std::move(error).hinted("--image " + shell_word(near.empty() ? images[0] : near[0]));
}

// The first records, as many as are measured; beyond the fewest for half of `time`.
ReadImages read_images(const std::string& file, const std::string& field, Seconds time, Clock& clock) {
  const NamedRecords records = open_named_records(file);
  ReadImages read;
  const Seconds began = clock.now();
  const auto enough = [&] { return read.files.size() >= kFewestImages && read.time >= time * 0.5; };
  for (DataRecord record; read.files.size() < kMostImages && read.size < kMostBytes && !enough();) {
    if (!records.reader->next(record).value()) break;
    Result<std::string_view> image = records.reader->field(record, field);
    if (!image.ok()) fail(hinted_image(std::move(image).error(), field, *records.reader, record));
    read.files.emplace_back(*image);
    read.size += Bytes(static_cast<std::int64_t>(read.files.back().size()));
    read.time = clock.now() - began;
  }
  if (read.files.empty()) fail(error(ErrorKind::invalid, "it has no records").at({file}));
  return read;
}

std::vector<std::string> row_of(const char* stage, double images, double bytes, Seconds time) {
  const double rate = images / time.count();
  return {stage, with_commas(std::llround(rate)), to_string(BytesPerSecond(bytes / time.count())),
          to_string(Seconds(1 / rate))};
}

}  // namespace

void refuse_records(const std::string& file) {
  const NamedRecords records = open_named_records(file);
  DataRecord record;
  const bool any = records.reader->next(record).value();
  const std::vector<std::string> images = any ? image_fields(*records.reader, record) : std::vector<std::string>();
  if (images.empty()) return;
  fail(error(ErrorKind::invalid, "'{}' holds images, and is no workload file", file)
           .hinted(fmt::format("systole data probe {} --image {}", shell_word(file), shell_word(images[0]))));
}

ExitCode probe_images_of(const std::string& file, const ImageProbeOptions& options, Seconds time, Context& context) {
  const int side = static_cast<int>(std::min<std::int64_t>(options.size, std::numeric_limits<int>::max()));
  ImageTransform transform = ImageTransform::create({.width = side, .height = side}).value();
  context.out.notice(fmt::format("about {:.3g} s", time.count()));
  const ReadImages read = read_images(file, options.field, time, context.clock);
  Result<ImageProbe> probed = probe_images(read.files, transform, context.clock, time * 0.5);
  if (!probed.ok())
    fail(std::move(probed).error().at({file}).hinted("systole data cat " + shell_word(file) + " --head 3"));
  const ImageProbe& probe = *probed;
  std::int64_t images = 0;
  std::string formats;
  Node counts = Node::map();
  for (const auto& [format, count] : probe.formats) {
    images += count;
    formats += fmt::format("{}{} {}", formats.empty() ? "" : ", ", with_commas(count), format);
    counts.set(format, count);
  }
  const double bytes_each = static_cast<double>(probe.size.count()) / static_cast<double>(images);
  const double pixels_each = static_cast<double>(probe.pixels) / static_cast<double>(images);
  const double prepared = static_cast<double>(probe.prepared);
  context.out.prose(fmt::format("{}: {}; on average {} and {} pixels\n", file, formats,
                                to_string(Bytes(std::llround(bytes_each))), with_commas(std::llround(pixels_each))));
  context.out.prose(
      table({"one thread", "images/s>", "of the files>", "an image>"},
            {row_of("read", static_cast<double>(read.files.size()), static_cast<double>(read.size.count()), read.time),
             row_of("decode, crop, resize", prepared, prepared * bytes_each, probe.time)},
            context.out.width()));
  context.out.prose(fmt::format("to {} x {} of f32 by a random crop and flip; this machine has {}\n", side, side,
                                counted(std::thread::hardware_concurrency(), "processor")));
  if (probe.refused > 0)
    context.out.message(
        fmt::format("{} not decoded; the first: {}", counted(probe.refused, "record"), probe.first_refused));
  context.out.json(Node::map({{"file", file},
                              {"field", options.field},
                              {"width", side},
                              {"height", side},
                              {"formats", std::move(counts)},
                              {"refused", probe.refused},
                              {"image_bytes", bytes_each},
                              {"image_pixels", pixels_each},
                              {"read_images_per_second", static_cast<double>(read.files.size()) / read.time.count()},
                              {"images_per_second", prepared / probe.time.count()}}));
  return ExitCode::done;
}

}  // namespace systole::cli

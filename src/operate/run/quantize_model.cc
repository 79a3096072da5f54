#include "operate/run/quantize_model.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>

#include "execute/weights/packed_folder.h"
#include "ground/base/files.h"
#include "ground/base/os_error.h"
#include "ground/base/shell_quoted.h"

namespace systole {
namespace {

constexpr std::size_t kMostTokens = 512, kMostBytes = std::size_t{64} << 10;

Status check_source(const ServedModel& model) {
  if (model.step) {
    return error(ErrorKind::invalid, "'{}' is a run, and a published model is packed", model.name)
        .hinted("write it as one first: systole ckpt export RUN --to FOLDER");
  }
  if (is_packed_type(model.parameter)) {
    return error(ErrorKind::invalid, "'{}' is packed in {} already", model.name, packed_name(model.parameter))
        .hinted("name the folder or the GGUF file that it was made of");
  }
  if (model.encodes() || model.model->task() == Task::masked) {
    return error(ErrorKind::unsupported,
                 "a model of family '{}' does not go on from a text, by which its error is measured",
                 model.model->family())
        .hinted("quantise it where it is loaded: systole serve MODEL --weights int8");
  }
  return {};
}

Error there(const std::string& path, const std::string& hint) {
  return error(ErrorKind::exists, "'{}' is there already", path).hinted(hint);
}

Status check_absent(const std::string& path) {
  if (!path_exists(path)) return {};
  return there(path, "--out with the name of a new folder");
}

// Makes the folder `path` of what `write` writes: under another name until it is whole.
Result<Bytes> make_whole_folder(const std::string& path, const std::function<Result<Bytes>(Store&)>& write) {
  TRY(check_absent(path));
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  const std::string name = std::filesystem::path(path).filename().string(), part = name + ".part",
                    part_path = path + ".part";
  TRY(make_folders(parent));
  std::error_code failed;
  if (!std::filesystem::create_directory(part_path, failed)) {
    if (failed) return os_error(failed.value(), "create the folder", part_path);
    return there(part_path,
                 fmt::format("another process writes it, or one was killed: then rm -r {}", shell_quoted(part_path)));
  }
  const auto written = [&]() -> Result<Bytes> {
    const std::unique_ptr<Store> inside = TRY(open_posix_store(part_path)), store = TRY(open_posix_store(parent));
    const Bytes bytes = TRY(write(*inside));
    TRY(check_absent(path));
    TRY(store->rename(part, name));
    TRY(store->sync_dir(""));
    return bytes;
  }();
  if (!written.ok()) std::filesystem::remove_all(part_path, failed);
  return written;
}

std::vector<std::int32_t> tokens_of(const ServedModel& model, std::string_view text) {
  Encoder encoder(model.tokenizer);
  std::vector<std::int32_t> tokens = model.tokens_of(encoder, text.substr(0, kMostBytes));
  tokens.resize(std::min({tokens.size(), kMostTokens, static_cast<std::size_t>(model.spec.context())}));
  return tokens;
}

}  // namespace

Result<QuantizedModel> quantize_model(const ServedModel& model, const Machine& machine,
                                      const QuantizeOptions& options) {
  TRY(check_source(model));
  std::string out = TRY(absolute_path(options.out));
  while (out.ends_with('/')) out.pop_back();
  TRY(check_absent(out));
  const std::vector<std::int32_t> tokens = tokens_of(model, options.text);
  EngineOptions wanted{.cache = static_cast<std::int64_t>(tokens.size()),
                       .parameter = options.parameter,
                       .score = true,
                       .generates = false};
  QuantizedModel made;
  const std::unique_ptr<Engine> packed = TRY(open_engine(model, machine, wanted));
  made.packed = TRY(bits_of(*packed, model.tokenizer, tokens));
  wanted.parameter = model.parameter;
  {
    const std::unique_ptr<Engine> stored = TRY(open_engine(model, machine, wanted));
    made.stored = TRY(bits_of(*stored, model.tokenizer, tokens));
  }
  made.percent = 100 * std::abs(made.packed.bits - made.stored.bits) / made.stored.bits;
  if (!(made.percent <= options.limit)) return made;  // nor where it is no number
  HfFolder from = TRY(open_hf_folder(model.name, model.spec));
  made.bytes = TRY(make_whole_folder(out, [&](Store& to) {
    return write_packed_folder(packed->executor(), from, model.tokenizer, to, options.parameter);
  }));
  made.written = true;
  return made;
}

}  // namespace systole

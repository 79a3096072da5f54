// Checkpoints of GPT-2 124M with AdamW's moments (f32, 1.49 GB) beside the plain acts that they are made of, in turns:
//
//   write    beside writing the same bytes to one file in blocks of 1 MiB and one fsync, as `dd bs=1M conv=fsync` does
//   restore  beside reading the chunk files into the same memory by as many threads; from the page cache, and from disk
//   verify   the same, without keeping the bytes
// and what looking whether zstd would help, and encrypting, add to the hashing of a write, without a disk
//
//   checkpoint_bench [FOLDER] [ROUNDS] [write|read]     FOLDER: on the disk that is meant; without, the binary's own
//
// What is asked: write >= 80% of dd, restore <= 1.2 x reading.

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

#include "execute/checkpoint/keys.h"
#include "execute/checkpoint/restore_parts.h"
#include "execute/checkpoint/save.h"
#include "ground/base/clock.h"
#include "ground/base/parallel.h"
#include "ground/store/store.h"

namespace systole::checkpoint {
namespace {

namespace fs = std::filesystem;

struct Tensor {
  std::string name;
  Shape shape;
};

std::vector<Tensor> gpt2() {
  std::vector<Tensor> tensors = {{"embed.tokens", {50257, 768}}, {"embed.positions", {1024, 768}}};
  for (int layer = 0; layer < 12; ++layer) {
    const auto add = [&](const char* name, Shape shape) {
      tensors.push_back({fmt::format("blocks.{}.{}", layer, name), std::move(shape)});
    };
    for (const char* norm : {"norm1.scale", "norm1.bias", "norm2.scale", "norm2.bias", "attn.o_bias", "mlp.down_bias"})
      add(norm, {768});
    add("attn.qkv", {768, 2304});
    add("attn.qkv_bias", {2304});
    add("attn.o", {768, 768});
    add("mlp.up", {768, 3072});
    add("mlp.up_bias", {3072});
    add("mlp.down", {3072, 768});
  }
  tensors.push_back({"norm.scale", {768}});
  tensors.push_back({"norm.bias", {768}});
  return tensors;
}

// Numbers like weights: their low bits are noise, so that nothing shrinks that would not in a run.
class State {
 public:
  State() {
    std::size_t size = 0;
    for (const Tensor& tensor : gpt2()) size += static_cast<std::size_t>(bytes_of(DType::f32, tensor.shape).count());
    bytes_.resize(3 * size / 4);
    std::uint64_t word = 88172645463325252ULL;
    for (float& value : bytes_) {
      word ^= word << 13;
      word ^= word >> 7;
      word ^= word << 17;
      value = (static_cast<float>(word & 0xffffff) / 16777216.0F - 0.5F) * 0.04F;
    }
    read_.resize(bytes_.size());
  }

  SaveRequest request() const {
    SaveRequest request;
    request.step = 1;
    std::size_t at = 0;
    for (const char* prefix : {"", "adamw.m/", "adamw.v/"}) {
      for (const Tensor& tensor : gpt2()) {
        const auto size = static_cast<std::size_t>(bytes_of(DType::f32, tensor.shape).count());
        request.tensors.push_back({prefix + tensor.name, *prefix ? Role::state : Role::parameter, DType::f32,
                                   tensor.shape, Box::whole(tensor.shape), bytes().subspan(at, size)});
        at += size;
      }
    }
    return request;
  }
  std::vector<RestoreDestination> targets() {
    std::vector<RestoreDestination> targets;
    std::size_t at = 0;
    for (const TensorPart& part : request().tensors) {
      targets.push_back({part.name, part.dtype, part.shape, part.box, into().subspan(at, part.bytes.size())});
      at += part.bytes.size();
    }
    return targets;
  }
  std::span<const std::byte> bytes() const { return std::as_bytes(std::span(bytes_)); }
  std::span<std::byte> into() { return std::as_writable_bytes(std::span(read_)); }
  bool came_back() const { return bytes_ == read_; }

 private:
  std::vector<float> bytes_, read_;
};

void must(bool well, const std::string& what) {
  if (well) return;
  fmt::print(stderr, "checkpoint_bench: {}: {}\n", what, std::strerror(errno));
  std::exit(1);
}

void write_plain(const fs::path& path, std::span<const std::byte> bytes) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
  must(fd >= 0, path.string());
  for (std::size_t at = 0; at < bytes.size();) {
    const ssize_t wrote = ::write(fd, bytes.data() + at, std::min<std::size_t>(1 << 20, bytes.size() - at));
    must(wrote > 0, path.string());
    at += static_cast<std::size_t>(wrote);
  }
  must(::fsync(fd) == 0 && ::close(fd) == 0, path.string());
}

// Reads every chunk file, into `into` one after another, or into a MiB of each thread where that is empty.
void read_plain(const std::vector<fs::path>& files, std::span<std::byte> into, int threads) {
  std::vector<std::size_t> begins;
  std::size_t end = 0;
  for (const fs::path& file : files) {
    begins.push_back(end);
    end += fs::file_size(file);
  }
  for_each_in_parallel(files.size(), threads, [&](std::size_t f) -> Status {
    std::vector<std::byte> own(into.empty() ? 1 << 20 : 0);
    const int fd = ::open(files[f].c_str(), O_RDONLY);
    must(fd >= 0, files[f].string());
    for (std::size_t at = 0, size = fs::file_size(files[f]); at < size;) {
      const std::size_t count = std::min<std::size_t>(1 << 20, size - at);
      std::byte* to = into.empty() ? own.data() : into.data() + std::min(begins[f] + at, into.size() - count);
      const ssize_t got = ::pread(fd, to, count, static_cast<off_t>(at));
      must(got > 0, files[f].string());
      at += static_cast<std::size_t>(got);
    }
    ::close(fd);
    return {};
  }).value();
}

void forget(const std::vector<fs::path>& files) {
  for (const fs::path& file : files) {
    const int fd = ::open(file.c_str(), O_RDONLY);
    must(fd >= 0 && ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0, file.string());
    ::close(fd);
  }
}

std::vector<fs::path> chunk_files(const fs::path& dir) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(dir / "chunks")) files.push_back(entry.path());
  return files;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return (values[values.size() / 2] + values[(values.size() - 1) / 2]) / 2;
}

// One act beside another, in turns; which one begins alternates.
struct Pair {
  std::vector<double> ours, theirs;
  template <typename Ours, typename Theirs>
  void turn(Clock& clock, int round, Ours do_ours, Theirs do_theirs) {
    const auto timed = [&](auto act) {
      ::sync();  // what an earlier act left to the disk is not this one's
      const Seconds began = clock.now();
      act();
      return (clock.now() - began).count();
    };
    if (round % 2 == 1) theirs.push_back(timed(do_theirs));
    ours.push_back(timed(do_ours));
    if (round % 2 == 0) theirs.push_back(timed(do_theirs));
  }
  // Of each turn.
  double ratio() const {
    std::vector<double> ratios;
    for (std::size_t i = 0; i < ours.size(); ++i) ratios.push_back(ours[i] / theirs[i]);
    return median(ratios);
  }
  void print(const char* what, double bytes, const char* beside, double ratio_shown, const char* asked) const {
    fmt::print("{:<28}{:>7.3f} s {:>6.2f} GB/s   {:<22}{:>7.3f} s {:>6.2f} GB/s   {:.2f}{}\n", what, median(ours),
               bytes / median(ours) / 1e9, beside, median(theirs), bytes / median(theirs) / 1e9, ratio_shown, asked);
    std::fflush(stdout);
  }
};

// Files that keep nothing.
class Nowhere : public Store {
 public:
  Result<std::unique_ptr<WritableFile>> create(std::string_view) override {
    return std::unique_ptr<WritableFile>(std::make_unique<File>());
  }
  Result<std::unique_ptr<WritableFile>> append_to(std::string_view path) override { return create(path); }
  Status read(std::string_view, std::int64_t, std::span<std::byte>) override { return none(); }
  Result<Bytes> size(std::string_view) override { return none(); }
  Result<bool> exists(std::string_view) override { return false; }
  Result<std::vector<std::string>> list(std::string_view) override { return none(); }
  Status make_dirs(std::string_view) override { return {}; }
  Status rename(std::string_view, std::string_view) override { return {}; }
  Status link(std::string_view, std::string_view) override { return {}; }
  Status remove(std::string_view) override { return {}; }
  Status remove_dir(std::string_view) override { return {}; }
  Status sync_dir(std::string_view) override { return {}; }
  Result<std::unique_ptr<FileLock>> try_lock(std::string_view) override { return none(); }
  Result<Bytes> free_space() override { return none(); }

 private:
  class File : public WritableFile {
    Status append(std::span<const std::byte>) override { return {}; }
    Status sync() override { return {}; }
    Status close() override { return {}; }
  };
  static Error none() { return error(ErrorKind::not_found, "nothing is kept here"); }
};

class Bench {
 public:
  Bench(const fs::path& dir, int rounds) : dir_(dir), rounds_(rounds), clock_(real_clock()) {
    fs::remove_all(dir_);
    fs::create_directories(dir_);
    store_ = open_posix_store(dir_.string()).value();
    options_.threads = threads_;
  }
  ~Bench() { fs::remove_all(dir_); }

  void run(const std::string& only) {
    const auto bytes = static_cast<double>(state_.bytes().size());
    fmt::print("GPT-2 124M with moments: {:.2f} GB in {}, {} threads, medians of {} turns\n", bytes / 1e9,
               dir_.string(), threads_, rounds_);
    if (only != "read") write(bytes);
    if (only == "write") return;
    if (only == "read") save_into("c", {}, options_);
    restore(bytes);
    costs(bytes);
  }

 private:
  void write(double bytes) {
    Pair pair;
    for (int round = 0; round < rounds_; ++round) {
      fs::remove_all(dir_ / "c");
      pair.turn(
          *clock_, round, [&] { save_into("c", {}, options_); }, [&] { write_plain(dir_ / "plain", state_.bytes()); });
      fs::remove(dir_ / "plain");
    }
    pair.print("write", bytes, "dd conv=fsync", 1 / pair.ratio(), " of dd (asked 0.80)");
  }

  void save_into(const char* name, std::shared_ptr<const Keys> keys, const SaveOptions& options) {
    save(Folder{objects_in(*store_), name, std::move(keys)}, state_.request(), options).value();
  }

  void restore(double bytes) {
    const std::vector<fs::path> files = chunk_files(dir_ / "c");
    const Folder folder{objects_in(*store_), "c"};
    const auto restoring = [&] {
      const Checkpoint from = open_step(folder, 1, Verify::lengths).value();
      restore_parts(from, state_.targets(), threads_).value();
    };
    const auto reading = [&] { read_plain(files, state_.into(), threads_); };
    const auto verifying = [&] {
      if (!find_damage(folder, load_manifest(folder, 1).value(), Verify::contents, threads_)->empty()) std::exit(1);
    };
    const auto passing = [&] { read_plain(files, {}, threads_); };
    Pair warm, cold, verify;
    reading();
    for (int round = 0; round < 2 * rounds_; ++round) {
      warm.turn(*clock_, round, restoring, reading);
      verify.turn(*clock_, round, verifying, passing);
    }
    restoring();
    if (!state_.came_back()) std::exit(1);
    warm.print("restore, from memory", bytes, "reading", warm.ratio(), " x reading (asked 1.2)");
    verify.print("verify, from memory", bytes, "reading", verify.ratio(), " x reading");
    const auto first = [&](auto act) {
      return [&, act] {
        forget(files);
        act();
      };
    };
    for (int round = 0; round < rounds_; ++round) cold.turn(*clock_, round, first(restoring), first(reading));
    cold.print("restore, from disk", bytes, "reading", cold.ratio(), " x reading (asked 1.2)");
  }

  // What preparing the bytes takes, all threads, into files that keep nothing: hashing alone, with a look whether zstd
  // would help (it would not), and encrypted.
  void costs(double bytes) {
    SaveOptions compressed = options_;
    compressed.compress = true;
    auto keys = std::make_shared<Keys>();
    keys->encryption = random_key();
    Nowhere nowhere;
    const auto preparing = [&](const SaveOptions& options, std::shared_ptr<const Keys> secret) {
      return [&, secret] {
        write_chunks(Folder{objects_in(nowhere), "", secret}, state_.request().tensors, options).value();
      };
    };
    Pair sampled, encrypted;
    for (int round = 0; round < 2 * rounds_; ++round) {
      sampled.turn(*clock_, round, preparing(compressed, {}), preparing(options_, {}));
      encrypted.turn(*clock_, round, preparing(options_, keys), preparing(options_, {}));
    }
    sampled.print("prepare, compress: true", bytes, "hashing alone", sampled.ratio(), " x");
    encrypted.print("prepare, encrypted", bytes, "hashing alone", encrypted.ratio(), " x");
  }

  fs::path dir_;
  int rounds_;
  std::unique_ptr<Clock> clock_;
  std::unique_ptr<Store> store_;
  State state_;
  SaveOptions options_;
  int threads_ = io_threads();
};

}  // namespace
}  // namespace systole::checkpoint

int main(int count, char** words) {
  namespace fs = std::filesystem;
  const fs::path above = count > 1 ? fs::path(words[1]) : fs::canonical("/proc/self/exe").parent_path();
  const int rounds = count > 2 ? std::max(1, std::atoi(words[2])) : 5;
  systole::checkpoint::Bench(above / fmt::format("checkpoint_bench.{}", ::getpid()), rounds)
      .run(count > 3 ? words[3] : "");
  return 0;
}

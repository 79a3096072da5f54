#include "execute/checkpoint/restore_parts.h"

#include <gtest/gtest.h>

#include "execute/checkpoint/testing/group_saves.h"

namespace systole::checkpoint {
namespace {

// Counts the bytes read from chunk files.
class CountingStore : public Store {
 public:
  explicit CountingStore(Store& store) : store_(store) {}
  std::int64_t take() { return std::exchange(read_, 0); }

  Status read(std::string_view path, std::int64_t offset, std::span<std::byte> into) override {
    if (path.find("chunks/") != path.npos) read_ += static_cast<std::int64_t>(into.size());
    return store_.read(path, offset, into);
  }
  Result<std::unique_ptr<WritableFile>> create(std::string_view path) override { return store_.create(path); }
  Result<std::unique_ptr<WritableFile>> append_to(std::string_view path) override { return store_.append_to(path); }
  Result<Bytes> size(std::string_view path) override { return store_.size(path); }
  Result<bool> exists(std::string_view path) override { return store_.exists(path); }
  Result<std::vector<std::string>> list(std::string_view dir) override { return store_.list(dir); }
  Status make_dirs(std::string_view dir) override { return store_.make_dirs(dir); }
  Status rename(std::string_view from, std::string_view to) override { return store_.rename(from, to); }
  Status link(std::string_view from, std::string_view to) override { return store_.link(from, to); }
  Status remove(std::string_view path) override { return store_.remove(path); }
  Status remove_dir(std::string_view dir) override { return store_.remove_dir(dir); }
  Status sync_dir(std::string_view dir) override { return store_.sync_dir(dir); }
  Result<std::unique_ptr<FileLock>> try_lock(std::string_view dir) override { return store_.try_lock(dir); }
  Result<Bytes> free_space() override { return store_.free_space(); }

 private:
  Store& store_;
  std::int64_t read_ = 0;
};

// A matrix whose rows are longer than 4 KiB, so that no gap is read, saved by `writers` ranks sharded along `cut`.
constexpr std::int64_t kRows = 24, kColumns = 12 * 1024;
const Shape kMatrix{kRows, kColumns};

std::vector<std::byte> matrix() {
  std::vector<std::byte> bytes(static_cast<std::size_t>(kRows * kColumns * 4));
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 131 + i / 977);
  return bytes;
}

void save_matrix(Store& store, int writers, const char* sharding) {
  const auto bytes = matrix();
  SaveRequest request;
  request.step = 1;
  const Mesh mesh = tiny_mesh(writers);
  std::vector<LaidTensor> tensors = {{"w", Role::parameter, DType::f32, kMatrix, Sharding::parse(sharding).value()}};
  const auto owned = assign_owners(tensors, mesh).value();
  for (int rank = 0; rank < writers; ++rank) {
    for (TensorPart& part : parts_to_save(tensors, mesh, rank, owned[static_cast<std::size_t>(rank)])) {
      if (part.box.empty()) continue;
      part.bytes = bytes;
      part.held = Box::whole(kMatrix);
      request.tensors.push_back(std::move(part));
    }
  }
  SaveOptions options;
  options.chunk_bytes = Bytes(200'000);  // cuts every part
  ASSERT_TRUE(save({objects_in(store), "c"}, request, options));
}

// Exact counts: the bytes read from the store equal the bytes that the ranks hold.
TEST(RestoreParts, ReadsExactlyTheBytesOfTheBoxes) {
  const auto whole = matrix();
  for (const auto& [writers, written] : {std::pair(1, "{}{}"), {2, "{x}{}"}, {4, "{y}{x}"}, {6, "{}{x,y}"}}) {
    auto memory = make_memory_store();
    save_matrix(*memory, writers, written);
    CountingStore store(*memory);
    const Checkpoint from = open_step({objects_in(store), "c"}, 1, Verify::lengths).value();
    EXPECT_EQ(store.take(), 0) << "looking at lengths reads nothing";
    for (const auto& [readers, cut] :
         {std::pair(1, "{}{}"), {2, "{}{x}"}, {3, "{x}{}"}, {4, "{x,y}{}"}, {6, "{y}{x}"}, {8, "{}{y}"}}) {
      const Mesh mesh = tiny_mesh(readers);
      for (int rank = 0; rank < readers; ++rank) {
        const Box box = box_on(kMatrix, Sharding::parse(cut).value(), mesh, rank).value();
        std::vector<std::byte> into(static_cast<std::size_t>(box.num_elements() * 4)), expected(into.size());
        const RestoreDestination target{"w", DType::f32, kMatrix, box, into};
        const auto report = restore_parts(from, std::span(&target, 1), 1);
        ASSERT_TRUE(report) << to_string(report.error());
        copy_part(box, 4, Box::whole(kMatrix), whole, box, expected);
        EXPECT_EQ(into, expected);
        // Whole chunks are read with the gaps between their pieces; here a chunk is one piece.
        EXPECT_EQ(report->read.count(), box.num_elements() * 4) << written << " to " << cut << " rank " << rank;
        EXPECT_EQ(store.take(), box.num_elements() * 4) << written << " to " << cut << " rank " << rank;
      }
    }
  }
}

// Gaps shorter than a page are read too, and no longer ones.
TEST(RestoreParts, ShortGapsAreReadAlong) {
  auto memory = make_memory_store();
  const HostTensor w = tiny_value(1, 3, DType::f32, {10, 8});
  SaveRequest request;
  request.tensors = {{"w", Role::parameter, DType::f32, {10, 8}, Box::whole({10, 8}), w.bytes()}};
  ASSERT_TRUE(save({objects_in(*memory), "c"}, request, SaveOptions()));
  CountingStore store(*memory);
  const Checkpoint from = open_step({objects_in(store), "c"}, 0, Verify::lengths).value();
  std::vector<std::byte> into(10 * 2 * 4);
  const RestoreDestination target{"w", DType::f32, {10, 8}, Box{{0, 2}, {10, 4}}, into};
  ASSERT_TRUE(restore_parts(from, std::span(&target, 1), 1));
  EXPECT_EQ(store.take(), (9 * 8 + 2) * 4) << "from the first element to the last";
}

// The tiny state, restored by every rank of each mesh, on several threads.
TEST(RestoreParts, EveryRankOfEveryMesh) {
  auto store = make_memory_store();
  const TinyRanks writers(30, 4, TinyCut::each_axis_a_dim);
  for (const auto& ending : group_save(*store, writers)) ASSERT_EQ(text_of(ending), "saved");
  const Checkpoint from = open_step({objects_in(*store), "c"}, 30, Verify::lengths).value();
  for (int readers : {1, 2, 3, 4, 6, 8}) {
    for (int cut = 0; cut < kTinyCuts; ++cut) {
      const TinyRanks ranks(30, readers, static_cast<TinyCut>(cut));
      for (int rank = 0; rank < readers; ++rank) {
        std::vector<std::vector<std::byte>> into;
        std::vector<RestoreDestination> targets;
        for (const auto& buffer : ranks.buffers(rank)) into.emplace_back(buffer.size(), std::byte{0xee});
        for (std::size_t t = 0; t < into.size(); ++t) {
          const LaidTensor& tensor = ranks.tensors()[t];
          targets.push_back(
              {tensor.name, tensor.dtype, tensor.shape, ranks.box(rank, t), into[t], ranks.held(rank, t)});
        }
        const auto report = restore_parts(from, targets, 3);
        ASSERT_TRUE(report) << to_string(report.error());
        EXPECT_EQ(into, ranks.buffers(rank)) << readers << " ranks, cut " << cut << ", rank " << rank;
        if (readers == 1) { EXPECT_EQ(report->chunks_partly, 0) << "one rank verifies all"; }
      }
    }
  }
}

std::vector<RestoreDestination> all_targets(std::vector<TinyTensor>& state) {
  std::vector<RestoreDestination> targets;
  for (TinyTensor& tensor : state) {
    const Shape& shape = tensor.value.shape();
    targets.push_back({tensor.name, tensor.value.dtype(), shape, Box::whole(shape), tensor.value.bytes()});
  }
  return targets;
}

TEST(RestoreParts, WalksBackOverAFlippedBitWithoutASecondReading) {
  auto memory = make_memory_store();
  ASSERT_TRUE(save_tiny({objects_in(*memory), "c"}, 10, tiny_options()));
  ASSERT_TRUE(save_tiny({objects_in(*memory), "c"}, 20, tiny_options()));
  FaultyStore store(*memory);
  const Folder folder{objects_in(store), "c"};
  const Manifest newest = load_manifest(folder, 20).value();
  CountingStore counted(store);
  std::vector<TinyTensor> state = tiny_state(0);
  const auto take = [&](const Checkpoint& from) -> Status {
    TRY(restore_parts(from, all_targets(state), 1));
    return {};
  };
  ASSERT_TRUE(restore_newest({objects_in(counted), "c"}, take));
  EXPECT_EQ(counted.take(), newest.chunk_bytes().count()) << "each byte once, and verified";

  // The chunk that only step 20 has; step 10 shares the chunk that never changes.
  const Manifest older = load_manifest(folder, 10).value();
  const auto own = std::find_if(newest.chunks.begin(), newest.chunks.end(), [&](const ChunkFile& chunk) {
    return std::find(older.chunks.begin(), older.chunks.end(), chunk) == older.chunks.end();
  });
  ASSERT_TRUE(store.flip_bit(folder.chunk(own->hash), own->bytes.count() - 1, 0));
  const auto restored = restore_newest(folder, take);
  ASSERT_TRUE(restored) << to_string(restored.error());
  EXPECT_EQ(restored->checkpoint.manifest().step, 10);
  ASSERT_EQ(restored->rejected.size(), 1U);
  EXPECT_EQ(restored->rejected[0].reason.kind, ErrorKind::corrupt);
  const auto expected = tiny_state(10);
  for (std::size_t t = 0; t < state.size(); ++t) EXPECT_EQ(state[t].value, expected[t].value) << state[t].name;

  const auto refused =
      restore_newest(folder, [](const Checkpoint&) -> Status { return error(ErrorKind::invalid, "another model"); });
  EXPECT_EQ(refused.error().message, "another model");
}

TEST(RestoreParts, SeveralLookForDamageTogether) {
  auto memory = make_memory_store();
  ASSERT_TRUE(save_tiny({objects_in(*memory), "c"}, 10, tiny_options()));
  FaultyStore store(*memory);
  const Folder folder{objects_in(store), "c"};
  const Manifest manifest = load_manifest(folder, 10).value();
  ASSERT_GT(manifest.chunks.size(), 3U);
  for (const ChunkFile& chunk : manifest.chunks) ASSERT_TRUE(store.flip_bit(folder.chunk(chunk.hash), 0, 0));
  EXPECT_EQ(find_damage(folder, manifest, Verify::contents, 3)->size(), manifest.chunks.size());
  std::set<std::string> found;
  for (int rank = 0; rank < 3; ++rank) {
    const std::vector<Damage> damage = find_damage(folder, manifest, Verify::contents, 2, {rank, 3}).value();
    for (const Damage& one : damage) EXPECT_TRUE(found.insert(one.chunk).second) << "looked at twice";
  }
  EXPECT_EQ(found.size(), manifest.chunks.size());
}

}  // namespace
}  // namespace systole::checkpoint

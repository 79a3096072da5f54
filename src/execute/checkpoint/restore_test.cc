#include "execute/checkpoint/restore.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <random>

#include "execute/checkpoint/compare.h"
#include "execute/checkpoint/inspect.h"
#include "execute/checkpoint/names.h"
#include "execute/checkpoint/testing/tiny_state.h"
#include "ground/base/testing/processor_time.h"
#include "ground/store/testing/faulty.h"

namespace systole::checkpoint {
namespace {

std::span<const std::byte> bytes_of_box(const HostTensor& whole, const Box& box, std::vector<std::byte>& into) {
  into.resize(static_cast<std::size_t>(box.num_elements() * size_of(whole.dtype())));
  copy_part(box, size_of(whole.dtype()), Box::whole(whole.shape()), whole.bytes(), box, into);
  return into;
}

TEST(Restore, ReadsBackWhatWasSaved) {
  auto store = make_memory_store();
  const Folder folder{objects_in(*store), "ckpt"};
  const auto report = save_tiny(folder, 10, tiny_options());
  ASSERT_TRUE(report);
  EXPECT_GT(report->stats.chunks_written, 2);
  auto restored = open_newest(folder);
  ASSERT_TRUE(restored);
  EXPECT_EQ(verify_tiny(restored->checkpoint), "");
  EXPECT_EQ(restored->checkpoint.manifest().identity.model, "tiny");
  EXPECT_TRUE(restored->rejected.empty());
}

TEST(Restore, WorksOnTheFilesOfThisMachine) {
  std::string root = testing::TempDir() + "systole_checkpoint_XXXXXX";
  ASSERT_NE(mkdtemp(root.data()), nullptr);
  auto store = open_posix_store(root);
  ASSERT_TRUE(store) << to_string(store.error());
  const Folder folder{objects_in(**store), "run/checkpoints"};
  for (std::int64_t step : {10, 20, 30}) {
    const auto saved = save_tiny(folder, step, tiny_options());
    ASSERT_TRUE(saved) << to_string(saved.error());
    EXPECT_FALSE(saved->sweep_error);
  }
  EXPECT_EQ(list_steps(folder).value(), (std::vector<std::int64_t>{20, 30}));
  EXPECT_EQ(verify_tiny(open_newest(folder).value().checkpoint), "");
  std::filesystem::remove_all(root);
}

TEST(Restore, FoldersThatAreNotThereHoldNoCheckpoint) {
  auto store = make_memory_store();
  auto restored = open_newest({objects_in(*store), "nowhere/at/all"});
  ASSERT_FALSE(restored);
  EXPECT_EQ(restored.error().kind, ErrorKind::not_found);
  EXPECT_EQ(open_step({objects_in(*store), "x"}, 5).error().kind, ErrorKind::not_found);
}

// Four writers hold a tensor sharded on both dims; any box of it can be read.
TEST(Restore, AnyMeshReadsAnyOthers) {
  auto store = make_memory_store();
  const Folder folder{objects_in(*store), ""};
  const HostTensor whole = tiny_value(1, 3, DType::f32, {9, 8, 5});
  const std::vector<Box> shards = {
      {{0, 0, 0}, {4, 3, 5}}, {{4, 0, 0}, {9, 3, 5}}, {{0, 3, 0}, {4, 8, 5}}, {{4, 3, 0}, {9, 8, 5}}};
  std::vector<Fragment> fragments;
  SaveOptions options = tiny_options();
  for (const Box& shard : shards) {
    std::vector<std::byte> bytes;
    const TensorPart part{"w", Role::parameter, DType::f32, {9, 8, 5}, shard, bytes_of_box(whole, shard, bytes)};
    fragments.push_back(write_chunks(folder, std::span(&part, 1), options).value());
  }
  SaveRequest request;
  request.step = 3;
  EXPECT_FALSE(commit(folder, request, std::span(fragments).first(3), options)) << "a quarter is missing";
  ASSERT_TRUE(commit(folder, request, fragments, options));
  const auto checkpoint = open_step(folder, 3).value();

  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    Box box;
    for (std::int64_t size : {9, 8, 5}) {
      const auto a = static_cast<std::int64_t>(random() % static_cast<unsigned>(size + 1)),
                 b = static_cast<std::int64_t>(random() % static_cast<unsigned>(size + 1));
      box.start.push_back(std::min(a, b));
      box.end.push_back(std::max(a, b));
    }
    std::vector<std::byte> expected, read(static_cast<std::size_t>(box.num_elements() * 4));
    ASSERT_TRUE(checkpoint.read("w", box, read));
    if (!box.empty()) bytes_of_box(whole, box, expected);
    EXPECT_EQ(read, expected) << to_string(box);
  }
}

TEST(Restore, TheStateHashKnowsNoLayout) {
  auto store = make_memory_store();
  const HostTensor w = tiny_value(1, 3, DType::f32, {9, 8}), v = tiny_value(1, 4, DType::bf16, {3});
  std::vector<std::string> hashes;
  for (const int layout : {0, 1, 2}) {
    const Folder folder{objects_in(*store), fmt::format("layout{}", layout)};
    SaveRequest request;
    std::vector<std::vector<std::byte>> bytes(3);
    const TensorPart part_v{"v", Role::state, DType::bf16, {3}, Box::whole({3}), v.bytes()};
    if (layout == 0)
      request.tensors = {{"w", Role::parameter, DType::f32, {9, 8}, Box::whole({9, 8}), w.bytes()}, part_v};
    const std::vector<Box> shards = layout == 1
                                        ? std::vector<Box>{{{0, 0}, {9, 1}}, {{0, 1}, {9, 8}}}
                                        : std::vector<Box>{{{0, 0}, {2, 8}}, {{2, 0}, {3, 8}}, {{3, 0}, {9, 8}}};
    if (layout > 0) request.tensors = {part_v};
    for (std::size_t s = 0; layout > 0 && s < shards.size(); ++s) {
      request.tensors.push_back(
          {"w", Role::parameter, DType::f32, {9, 8}, shards[s], bytes_of_box(w, shards[s], bytes[s])});
    }
    SaveOptions options = tiny_options();
    options.chunk_bytes = Bytes(64 << layout);
    ASSERT_TRUE(save(folder, request, options));
    hashes.push_back(state_hash(open_newest(folder)->checkpoint).value());
  }
  EXPECT_EQ(hashes[0], hashes[1]);
  EXPECT_EQ(hashes[0], hashes[2]);
  const Folder other{objects_in(*store), "other"};
  save_tiny(other, 1, tiny_options()).value();
  const std::string first = state_hash(open_newest(other)->checkpoint).value();
  save_tiny(other, 2, tiny_options()).value();
  EXPECT_NE(first, state_hash(open_newest(other)->checkpoint).value());
}

TEST(Restore, WalksBackOverDamageAndSaysWhy) {
  auto initial = make_memory_store();
  for (std::int64_t step : {10, 20, 30, 40}) save_tiny({objects_in(*initial), "c"}, step, tiny_options(9)).value();
  FaultyStore store(*initial);
  const Folder folder{objects_in(store), "c"};
  const Manifest forty = load_manifest(folder, 40).value(), thirty = load_manifest(folder, 30).value();
  ASSERT_TRUE(store.flip_bit(folder.chunk(forty.chunks[0].hash), 3, 5));
  ASSERT_TRUE(store.remove(folder.chunk(thirty.chunks[0].hash)));
  ASSERT_TRUE(store.flip_bit(folder.manifest(20), 400, 1));
  auto restored = open_newest(folder);
  ASSERT_TRUE(restored) << to_string(restored.error());
  EXPECT_EQ(restored->checkpoint.manifest().step, 10);
  EXPECT_EQ(verify_tiny(restored->checkpoint), "");
  ASSERT_EQ(restored->rejected.size(), 3U);
  EXPECT_EQ(restored->rejected[0].step, 40);
  EXPECT_EQ(restored->rejected[0].reason.kind, ErrorKind::corrupt);
  EXPECT_EQ(restored->rejected[0].reason.where.file, folder.chunk(forty.chunks[0].hash));
  EXPECT_EQ(restored->rejected[1].reason.kind, ErrorKind::not_found);
  EXPECT_EQ(restored->rejected[2].reason.kind, ErrorKind::corrupt);

  const auto damage = find_damage(folder, forty).value();
  ASSERT_EQ(damage.size(), 1U);
  EXPECT_EQ(damage[0].tensors, std::vector<std::string>{"embed.weight"});
  EXPECT_TRUE(find_damage(folder, forty, Verify::lengths).value().empty());

  ASSERT_TRUE(store.remove(folder.manifest(10)));
  restored = open_newest(folder);
  ASSERT_FALSE(restored);
  EXPECT_EQ(restored.error().kind, ErrorKind::corrupt);
  EXPECT_EQ(restored.error().others.size(), 3U);
}

// A save rewrites chunks that it finds damaged, which also repairs the checkpoints that share them.
TEST(Restore, ASaveHealsTheChunksItReuses) {
  auto initial = make_memory_store();
  save_tiny({objects_in(*initial), "c"}, 10, tiny_options()).value();
  FaultyStore store(*initial);
  const Folder folder{objects_in(store), "c"};
  const Manifest manifest = load_manifest(folder, 10).value();
  for (const ChunkFile& chunk : manifest.chunks) ASSERT_TRUE(store.flip_bit(folder.chunk(chunk.hash), 1, 1));
  EXPECT_EQ(open_newest(folder).error().kind, ErrorKind::corrupt);
  const auto report = save_tiny(folder, 10, tiny_options());
  ASSERT_TRUE(report);
  EXPECT_EQ(report->stats.chunks_reused, 0);
  EXPECT_TRUE(open_newest(folder));
  const auto again = save_tiny(folder, 10, tiny_options());
  EXPECT_EQ(again->stats.chunks_written, 0);
  EXPECT_GT(again->stats.chunks_reused, 0);
}

TEST(Restore, FrozenTensorsAreWrittenOnce) {
  auto store = make_memory_store();
  const Folder folder{objects_in(*store), "c"};
  save_tiny(folder, 10, tiny_options()).value();
  EXPECT_EQ(save_tiny(folder, 20, tiny_options())->stats.chunks_reused, 1);
}

TEST(Restore, ReadsThatDoNotFitSayWhich) {
  auto store = make_memory_store();
  const Folder folder{objects_in(*store), "c"};
  save_tiny(folder, 10, tiny_options()).value();
  const auto checkpoint = open_newest(folder)->checkpoint;
  std::vector<std::byte> bytes(48);
  auto status = checkpoint.read("blocks.0.atn.q", Box::whole({3, 4}), bytes);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().kind, ErrorKind::not_found);
  EXPECT_NE(status.error().hint.find("blocks.0.attn.q"), std::string::npos) << status.error().hint;
  status = checkpoint.read("blocks.0.attn.q", DType::f32, {4, 3}, Box::whole({4, 3}), bytes);
  EXPECT_NE(status.error().message.find("f32[3, 4]"), std::string::npos) << status.error().message;
  status = checkpoint.read("blocks.0.attn.q", DType::bf16, {3, 4}, Box::whole({3, 4}), bytes);
  EXPECT_EQ(status.error().kind, ErrorKind::invalid);
  status = checkpoint.read("blocks.0.attn.q", Box{{0, 0}, {3, 5}}, bytes);
  EXPECT_EQ(status.error().kind, ErrorKind::invalid);
  status = checkpoint.read("blocks.0.attn.q", Box{{0, 0}, {2, 4}}, bytes);
  EXPECT_NE(status.error().message.find("32 bytes"), std::string::npos) << status.error().message;
}

TEST(Restore, PartsThatDoNotFitTheirTensorAreRefusedBeforeAnythingIsWritten) {
  auto store = make_memory_store();
  const Folder folder{objects_in(*store), "c"};
  std::vector<std::byte> bytes(16);
  SaveRequest request;
  const auto refusal = [&](std::vector<TensorPart> parts) {
    request.tensors = std::move(parts);
    const auto saved = save(folder, request, tiny_options());
    return saved ? std::string() : saved.error().message;
  };
  const TensorPart good{"a", Role::parameter, DType::f32, {4}, Box::whole({4}), bytes};
  TensorPart beyond = good, shorter = good, negative = good, half = good, other = good;
  beyond.box.end = {5};
  shorter.bytes = shorter.bytes.first(12);
  negative.shape = {-4};
  half.box.end = {2};
  half.bytes = half.bytes.first(8);
  other.dtype = DType::i32;
  EXPECT_NE(refusal({beyond}).find("'a'"), std::string::npos);
  EXPECT_NE(refusal({shorter}).find("16 bytes and 12"), std::string::npos) << refusal({shorter});
  EXPECT_NE(refusal({negative}), "");
  EXPECT_NE(refusal({good, other}).find("twice"), std::string::npos);
  EXPECT_EQ(list_or_empty(*store, "c").value().size(), 0U);
  EXPECT_NE(refusal({good, half}).find("overlap"), std::string::npos) << refusal({good, half});
  EXPECT_NE(refusal({half}).find("cover"), std::string::npos) << refusal({half});
  EXPECT_EQ(list_steps(folder).value().size(), 0U);
  EXPECT_TRUE(list_or_empty(*store, folder.chunks())->empty()) << "refused saves leave nothing";
}

TEST(Names, AnotherModelIsRefusedWithNamesAndNearOnes) {
  auto store = make_memory_store();
  const Folder folder{objects_in(*store), "c"};
  save_tiny(folder, 10, tiny_options()).value();
  const Manifest manifest = load_manifest(folder, 10).value();
  std::vector<RequestedTensor> wanted;
  for (const TinyTensor& tensor : tiny_state(10)) {
    if (tensor.role == Role::parameter)
      wanted.push_back({tensor.name, tensor.value.dtype(), tensor.value.shape(), tensor.role});
  }
  EXPECT_TRUE(check_model(manifest, wanted))
      << "the optimizer's state is no difference when only parameters are asked for";
  wanted[0].name = "embed.weights";
  wanted[1].shape = {4, 4};
  wanted[2].dtype = DType::f32;
  const auto differences = compare_names(manifest, wanted);
  ASSERT_EQ(differences.size(), 4U);
  EXPECT_EQ(differences[0].kind, Mismatch::Kind::missing);
  EXPECT_NE(differences[0].text.find("(it has 'embed.weight')"), std::string::npos) << differences[0].text;
  EXPECT_EQ(differences[1].kind, Mismatch::Kind::shape);
  EXPECT_EQ(differences[2].kind, Mismatch::Kind::dtype);
  EXPECT_EQ(differences[3].kind, Mismatch::Kind::extra);
  const auto refused = check_model(manifest, wanted);
  EXPECT_EQ(refused.error().kind, ErrorKind::invalid);
  EXPECT_EQ(refused.error().others.size(), 4U);
}

// If nothing fits, similar names are searched a few times only, not once per tensor.
TEST(Names, TensOfThousandsOfStrangersAreToldInASecond) {
  Manifest manifest;
  std::vector<RequestedTensor> wanted;
  for (int i = 0; i < 20'000; ++i) {
    manifest.tensors.push_back(
        {fmt::format("blocks.{}.attention.query.weight", i), Role::parameter, DType::f32, {1}, {}});
    wanted.push_back({fmt::format("model.layers.{}.self_attn.q_proj", i), DType::f32, {1}, Role::parameter});
  }
  const Seconds began = processor_time();
  const Status refused = check_model(manifest, wanted);
  EXPECT_LT(processor_time() - began, Seconds(10.0)) << "in pairs it is minutes; this leaves room for sanitizers";
  EXPECT_NE(refused.error().message.find("40000 tensors differ"), std::string::npos) << refused.error().message;
  ASSERT_EQ(refused.error().others.size(), 101U);
  EXPECT_EQ(refused.error().others.back().message, "and 39900 more tensors");
}

TEST(Compare, DiffsTensorByTensor) {
  auto store = make_memory_store();
  SaveRequest request;
  HostTensor a(DType::f32, {2, 3}), b = a;
  b.set(4, -2.5);
  b.set(5, 1);
  const auto part = [](const char* name, const HostTensor& tensor) {
    return TensorPart{name,          Role::parameter, tensor.dtype(), tensor.shape(), Box::whole(tensor.shape()),
                      tensor.bytes()};
  };
  const HostTensor other(DType::f32, {6}), nan(DType::f32, {6}, std::vector<double>{0, 0, std::nan(""), 0, 0, 0});
  request.tensors = {part("same", a), part("values", a), part("nan", other), part("type", a), part("left", a)};
  const Folder folder{objects_in(*store), "c"};
  save(folder, request, tiny_options(0)).value();
  request.step = 1;
  request.tensors = {part("right", a), part("same", a), part("values", b), part("nan", nan), part("type", other)};
  save(folder, request, tiny_options(0)).value();
  const auto rows = diff(open_step(folder, 0).value(), open_step(folder, 1).value()).value();
  ASSERT_EQ(rows.size(), 6U);  // sorted by name
  EXPECT_EQ(rows[0].kind, TensorDiff::Kind::only_in_a);
  EXPECT_TRUE(std::isinf(rows[1].max_abs));
  EXPECT_EQ(rows[2].kind, TensorDiff::Kind::only_in_b);
  EXPECT_EQ(rows[3].kind, TensorDiff::Kind::equal);
  EXPECT_EQ(rows[4].kind, TensorDiff::Kind::other_type);
  EXPECT_EQ(rows[5].kind, TensorDiff::Kind::values);
  EXPECT_EQ(rows[5].differing, 2);
  EXPECT_EQ(rows[5].first, 4);
  EXPECT_EQ(rows[5].max_abs, 2.5);
}

TEST(Inspect, ListsAndSummarizes) {
  auto initial = make_memory_store();
  for (std::int64_t step : {10, 20, 30}) save_tiny({objects_in(*initial), "c"}, step, tiny_options(9)).value();
  ASSERT_TRUE(bless({objects_in(*initial), "c"}, 20));
  FaultyStore store(*initial);
  const Folder folder{objects_in(store), "c"};
  ASSERT_TRUE(store.flip_bit(folder.manifest(30), 300, 2));
  const auto rows = list(folder).value();
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].num_tensors, 8);
  EXPECT_FALSE(rows[0].blessed);
  EXPECT_TRUE(rows[1].blessed);
  EXPECT_LT(rows[1].own_bytes, rows[1].chunk_bytes) << "the frozen chunk is shared";
  EXPECT_TRUE(rows[2].unreadable);
  const auto numbers = summarize(open_step(folder, 10).value(), "blocks.0.attn.q").value();
  EXPECT_EQ(numbers.elements, 12);
  double sum = 0;
  for (double value : tiny_value(10, 2, DType::f32, {3, 4}).values()) sum += value;
  EXPECT_DOUBLE_EQ(numbers.mean, sum / 12);
}

}  // namespace
}  // namespace systole::checkpoint

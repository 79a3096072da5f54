// Ops that move elements: strided copies and fills.

#include "execute/backends/cpu/node_call.h"

namespace systole::cpu {
namespace {

std::string refuses(const NodeInfo& info, Shared&) {
  for (int i = 0; i < info.num_results(); ++i) {
    if (info.result(i).ndim() > kMaxDims) return fmt::format("{} dims, more than {}", info.result(i).ndim(), kMaxDims);
  }
  return {};
}

// Strides by result dim; the copy goes over `size`.
CopyArgs copy_args(const Type& operand, const Shape& size, const std::vector<std::int64_t>& src,
                   const std::vector<std::int64_t>& dst, int threads) {
  CopyArgs args{};
  args.elem_size = static_cast<int>(size_of(operand.dtype));
  args.operand_elements = operand.num_elements();
  args.ndim = static_cast<int>(size.size());
  for (std::size_t k = 0; k < size.size(); ++k) {
    args.size[k] = size[k];
    args.src_stride[k] = src[k];
    args.dst_stride[k] = dst[k];
  }
  args.threads = threads;
  return args;
}

BoundKernel bind_copy(const Places& places, CopyArgs args, std::int64_t src_offset, Shared& shared) {
  args.src = places.operand<std::byte>(0) + src_offset * args.elem_size;
  args.dst = places.result(0);
  return call(shared.kernels.copy, args);
}

BoundKernel bind_same(const NodeInfo& info, const Places& places, Shared& shared) {
  const auto strides = strides_of(info.result(0).shape);
  return bind_copy(places, copy_args(info.operand(0), info.result(0).shape, strides, strides, shared.threads), 0,
                   shared);
}

BoundKernel bind_transpose(const NodeInfo& info, const Places& places, Shared& shared) {
  const auto own = strides_of(info.operand(0).shape);
  std::vector<std::int64_t> src;
  for (const std::int64_t dim : info.attrs().get_ints("perm")) src.push_back(own[static_cast<std::size_t>(dim)]);
  return bind_copy(
      places, copy_args(info.operand(0), info.result(0).shape, src, strides_of(info.result(0).shape), shared.threads),
      0, shared);
}

BoundKernel bind_broadcast(const NodeInfo& info, const Places& places, Shared& shared) {
  const auto own = strides_of(info.operand(0).shape);
  const Ints& dims = info.attrs().get_ints("dims");
  std::vector<std::int64_t> src(info.result(0).shape.size(), 0);
  for (std::size_t k = 0; k < dims.size(); ++k) src[static_cast<std::size_t>(dims[k])] = own[k];
  return bind_copy(
      places, copy_args(info.operand(0), info.result(0).shape, src, strides_of(info.result(0).shape), shared.threads),
      0, shared);
}

std::int64_t offset_of(const Ints& index, const std::vector<std::int64_t>& strides) {
  std::int64_t offset = 0;
  for (std::size_t k = 0; k < index.size(); ++k) offset += index[k] * strides[k];
  return offset;
}

BoundKernel bind_slice(const NodeInfo& info, const Places& places, Shared& shared) {
  const auto own = strides_of(info.operand(0).shape);
  const CopyArgs args =
      copy_args(info.operand(0), info.result(0).shape, own, strides_of(info.result(0).shape), shared.threads);
  return bind_copy(places, args, offset_of(info.attrs().get_ints("start"), own), shared);
}

// Combines several kernels into one.
BoundKernel all_of(std::vector<BoundKernel> parts) {
  return [parts = std::move(parts)] {
    KernelReport sum{};
    for (const BoundKernel& part : parts) {
      const KernelReport r = part();
      sum.bytes_read += r.bytes_read;
      sum.bytes_written += r.bytes_written;
    }
    return sum;
  };
}

BoundKernel bind_concatenate(const NodeInfo& info, const Places& places, Shared& shared) {
  const auto dim = static_cast<std::size_t>(info.attrs().get_int("dim"));
  const auto dst = strides_of(info.result(0).shape);
  std::vector<BoundKernel> parts;
  std::int64_t at = 0;
  for (int i = 0; i < info.num_operands(); ++i) {
    const Type& part = info.operand(i);
    CopyArgs args = copy_args(part, part.shape, strides_of(part.shape), dst, shared.threads);
    args.src = places.operand(i);
    args.dst = places.result<std::byte>(0) + at * dst[dim] * args.elem_size;
    parts.push_back(call(shared.kernels.copy, args));
    at += part.shape[dim];
  }
  return all_of(std::move(parts));
}

// Fills the whole result, then copies the operand into it; counts the bytes as written once.
BoundKernel bind_pad(const NodeInfo& info, const Places& places, Shared& shared) {
  const Type &x = info.operand(0), &y = info.result(0);
  std::byte bits[8] = {};
  store(y.dtype, bits, 0, info.attrs().get_double("value"));
  std::uint64_t value;
  std::memcpy(&value, bits, 8);
  const auto dst = strides_of(y.shape);
  CopyArgs copy = copy_args(x, x.shape, strides_of(x.shape), dst, shared.threads);
  copy.src = places.operand(0);
  copy.dst = places.result<std::byte>(0) + offset_of(info.attrs().get_ints("low"), dst) * copy.elem_size;
  const FillArgs fill{places.result(0), copy.elem_size, value, y.num_elements(), shared.threads};
  return [fill, copy, &kernels = shared.kernels] {
    KernelReport report = kernels.fill(fill);
    report.bytes_read = kernels.copy(copy).bytes_read;
    return report;
  };
}

std::int64_t row_elements(const Type& type) {  // without the two outermost dims
  return num_elements(Shape(type.shape.begin() + 2, type.shape.end()));
}

BoundKernel bind_take_row(const NodeInfo& info, const Places& places, Shared& shared) {
  const Type& x = info.operand(0);
  return call(shared.kernels.take_row,
              TakeRowArgs{places.operand(0), places.operand<std::int32_t>(1), places.result(0),
                          static_cast<int>(size_of(x.dtype)), x.size(0), x.size(1), row_elements(x), shared.threads});
}

BoundKernel bind_take_part(const NodeInfo& info, const Places& places, Shared& shared) {
  const Type &x = info.operand(0), &y = info.result(0);
  const auto dim = static_cast<std::size_t>(info.attrs().get_int("dim"));
  const auto src = strides_of(x.shape);
  CopyArgs copy = copy_args(y, y.shape, src, strides_of(y.shape), shared.threads);
  copy.src = places.operand(0);
  copy.dst = places.result(0);
  const std::int64_t step = y.shape[dim] * src[dim] * copy.elem_size, parts = info.attrs().get_int("parts");
  const FillArgs zeros{places.result(0), copy.elem_size, 0, y.num_elements(), shared.threads};
  return [=, index = places.operand<std::int64_t>(1), &kernels = shared.kernels] {
    KernelReport report;
    if (*index < 0 || *index >= parts) {
      report = kernels.fill(zeros);
      report.bytes_read = report.bytes_written;  // as planned: the part of x that is missing here
    } else {
      CopyArgs part = copy;
      part.src = static_cast<const std::byte*>(copy.src) + *index * step;
      report = kernels.copy(part);
    }
    report.bytes_read += 8;
    return report;
  };
}

BoundKernel bind_cache_write(const NodeInfo& info, const Places& places, Shared& shared) {
  const Type& cache = info.operand(0);
  return call(shared.kernels.cache_write,
              CacheWriteArgs{places.operand(0), places.result(0), places.operand(1), places.operand<std::int32_t>(2),
                             static_cast<int>(size_of(cache.dtype)), cache.size(0), cache.size(1),
                             info.operand(1).size(1), row_elements(cache), shared.threads});
}

BoundKernel bind_page_write(const NodeInfo& info, const Places& places, Shared& shared) {
  const Type &pages = info.operand(0), &rows = info.operand(1);
  return call(shared.kernels.page_write,
              PageWriteArgs{places.operand(0), places.result(0), places.operand(1), places.operand<std::int32_t>(2),
                            places.operand<std::int32_t>(3), static_cast<int>(size_of(pages.dtype)), pages.size(0),
                            pages.size(1), rows.size(0), rows.size(1), info.operand(2).size(1), row_elements(pages),
                            shared.threads});
}

constexpr KernelEntry kEntries[] = {{"copy", refuses, nullptr, bind_same, "copy"},
                                    {"transpose", refuses, nullptr, bind_transpose, "copy"},
                                    {"broadcast", refuses, nullptr, bind_broadcast, "copy"},
                                    {"slice", refuses, nullptr, bind_slice, "copy"},
                                    {"concatenate", refuses, nullptr, bind_concatenate, "copy"},
                                    {"pad", refuses, nullptr, bind_pad, "fill, copy"},
                                    {"take_row", refuses, nullptr, bind_take_row, "take_row"},
                                    {"take_part", refuses, nullptr, bind_take_part, "copy"},
                                    {"cache_write", refuses, nullptr, bind_cache_write, "cache_write"},
                                    {"page_write", refuses, nullptr, bind_page_write, "page_write"}};

}  // namespace

std::span<const KernelEntry> movement_entries() { return kEntries; }

}  // namespace systole::cpu

// Strided copies. Dims of size 1 are dropped, and neighbours that are adjacent on both sides are merged. Then the
// innermost dim of dst is a contiguous run (memcpy), one value (fill), or, if another dim is innermost in src, a
// transpose in tiles of 32 × 32 that fit the first-level cache.

#include "execute/backends/cpu/kernels/entry.h"
#include "execute/backends/cpu/kernels/vec.h"

namespace systole::cpu::SYSTOLE_ISA {
namespace {

struct Form {
  int ndim = 0;
  i64 size[kMaxDims], src[kMaxDims], dst[kMaxDims];  // outermost first, by dst stride
};

Form canonical(const CopyArgs& args) {
  Form form;
  for (int k = 0; k < args.ndim; ++k) {  // insertion sort by descending dst stride: dst is written in order
    if (args.size[k] == 1) continue;
    int at = form.ndim++;
    for (; at > 0 && form.dst[at - 1] < args.dst_stride[k]; --at) {
      form.size[at] = form.size[at - 1];
      form.src[at] = form.src[at - 1];
      form.dst[at] = form.dst[at - 1];
    }
    form.size[at] = args.size[k];
    form.src[at] = args.src_stride[k];
    form.dst[at] = args.dst_stride[k];
  }
  int last = 0;
  for (int k = 1; k < form.ndim; ++k) {
    if (form.src[last] == form.size[k] * form.src[k] && form.dst[last] == form.size[k] * form.dst[k]) {
      form.size[last] *= form.size[k];
    } else {
      form.size[++last] = form.size[k];
    }
    form.src[last] = form.src[k];
    form.dst[last] = form.dst[k];
  }
  if (form.ndim > 0) form.ndim = last + 1;
  return form;
}

// The offsets of the index-th point over all dims except the innermost and dim `but`.
void offsets_of(const Form& form, int but, i64 index, i64* src, i64* dst) {
  for (int k = form.ndim - 2; k >= 0; --k) {
    if (k == but) continue;
    const i64 i = index % form.size[k];
    index /= form.size[k];
    *src += i * form.src[k];
    *dst += i * form.dst[k];
  }
}

template <typename T>
void copy_run(const T* src, i64 src_stride, T* dst, i64 dst_stride, i64 n) {
  if (src_stride == 1 && dst_stride == 1) {
    __builtin_memcpy(dst, src, static_cast<std::size_t>(n) * sizeof(T));
  } else if (src_stride == 0 && dst_stride == 1) {
    const T value = *src;
    for (i64 i = 0; i < n; ++i) dst[i] = value;
  } else {
    for (i64 i = 0; i < n; ++i) dst[i * dst_stride] = src[i * src_stride];
  }
}

constexpr i64 kTile = 32;

// A tile of a transpose: n innermost points of dst by m points of the dim that is innermost in src.
template <typename T>
void transpose_tile(const T* src, i64 src_stride, T* dst, i64 dst_stride, i64 m, i64 n) {
  for (i64 j = 0; j < m; ++j) {
    for (i64 i = 0; i < n; ++i) dst[j * dst_stride + i] = src[i * src_stride + j];
  }
}

template <typename T>
void copy_form(const Form& form, const T* src, T* dst, int threads) {
  const int inner = form.ndim - 1;
  const i64 n = form.size[inner];
  int across = -1;  // the dim that is innermost in src, if it is not dst's innermost
  for (int k = 0; k < inner; ++k) {
    if (form.src[k] == 1 && form.src[inner] > 1 && form.dst[inner] == 1) across = k;
  }
  i64 outer = 1;
  for (int k = 0; k < inner; ++k) outer *= k == across ? 1 : form.size[k];
  if (across >= 0) {
    const i64 m = form.size[across], strips = ceil_div(m, kTile);
    parallel_blocks(
        threads, outer * strips, rows_per_part(kTile * n * static_cast<i64>(sizeof(T))), [&](i64 begin, i64 end) {
          for (i64 part = begin; part < end; ++part) {
            i64 from = 0, to = 0;
            offsets_of(form, across, part / strips, &from, &to);
            const i64 j = part % strips * kTile, rows = lesser(kTile, m - j);
            for (i64 i = 0; i < n; i += kTile) {
              transpose_tile(src + from + j + i * form.src[inner], form.src[inner], dst + to + j * form.dst[across] + i,
                             form.dst[across], rows, lesser(kTile, n - i));
            }
          }
        });
    return;
  }
  const i64 piece = 65536 / static_cast<i64>(sizeof(T)), pieces = ceil_div(n, piece);  // long runs are split too
  parallel_blocks(threads, outer * pieces, rows_per_part(lesser(n, piece) * static_cast<i64>(sizeof(T))),
                  [&](i64 begin, i64 end) {
                    for (i64 part = begin; part < end; ++part) {
                      i64 from = 0, to = 0;
                      offsets_of(form, -1, part / pieces, &from, &to);
                      const i64 i = part % pieces * piece;
                      copy_run(src + from + i * form.src[inner], form.src[inner], dst + to + i * form.dst[inner],
                               form.dst[inner], lesser(piece, n - i));
                    }
                  });
}

// Calls fn(T*) with the unsigned integer type of this size.
template <typename Fn>
inline void visit_size(int elem_size, const Fn& fn) {
  switch (elem_size) {
    case 1: return fn(static_cast<std::uint8_t*>(nullptr));
    case 2: return fn(static_cast<std::uint16_t*>(nullptr));
    case 4: return fn(static_cast<std::uint32_t*>(nullptr));
    default: return fn(static_cast<std::uint64_t*>(nullptr));
  }
}

}  // namespace

KernelReport copy(const CopyArgs& args) {
  i64 written = args.elem_size;
  for (int k = 0; k < args.ndim; ++k) written *= args.size[k];
  if (written > 0) {
    Form form = canonical(args);
    if (form.ndim == 0) {
      form.ndim = 1;
      form.size[0] = form.src[0] = form.dst[0] = 1;
    }
    visit_size(args.elem_size, [&](auto* type) {
      using T = typename Pointee<decltype(type)>::type;
      copy_form(form, static_cast<const T*>(args.src), static_cast<T*>(args.dst), args.threads);
    });
  }
  return {0, 0, 0, 0, args.operand_elements * args.elem_size, written};
}

KernelReport fill(const FillArgs& args) {
  visit_size(args.elem_size, [&](auto* type) {
    using T = typename Pointee<decltype(type)>::type;
    T* dst = static_cast<T*>(args.dst);
    const T value = static_cast<T>(args.bits);
    parallel_blocks(args.threads, args.n, 65536 / args.elem_size, [&](i64 begin, i64 end) {
      for (i64 i = begin; i < end; ++i) dst[i] = value;
    });
  });
  return {0, 0, 0, 0, 0, args.n * args.elem_size};
}

KernelReport take_row(const TakeRowArgs& args) {
  const i64 bytes = args.inner * args.elem_size;
  for (i64 b = 0; b < args.batch; ++b) {
    char* y = static_cast<char*>(args.y) + b * bytes;
    const i64 row = args.index[b];
    if (row >= 0 && row < args.rows) {
      __builtin_memcpy(y, static_cast<const char*>(args.x) + (b * args.rows + row) * bytes,
                       static_cast<std::size_t>(bytes));
    } else {
      __builtin_memset(y, 0, static_cast<std::size_t>(bytes));
    }
  }
  return {0, 0, 0, 0, args.batch * (args.rows * bytes + 4), args.batch * bytes};
}

KernelReport page_write(const PageWriteArgs& args) {
  const i64 bytes = args.inner * args.elem_size;
  if (args.pages_in != args.pages) {
    __builtin_memcpy(args.pages, args.pages_in, static_cast<std::size_t>(args.count * args.size * bytes));
  }
  parallel_blocks(args.threads, args.batch * args.t, rows_per_part(bytes), [&](i64 begin, i64 end) {
    for (i64 i = begin; i < end; ++i) {
      const i64 b = i / args.t, at = args.position[b] + i % args.t;
      if (at < 0 || at >= args.entries * args.size) continue;
      const i64 page = args.table == nullptr ? b : args.table[b * args.entries + at / args.size];
      if (page < 0 || page >= args.count) continue;
      __builtin_memcpy(static_cast<char*>(args.pages) + (page * args.size + at % args.size) * bytes,
                       static_cast<const char*>(args.rows) + i * bytes, static_cast<std::size_t>(bytes));
    }
  });
  const i64 rows = args.batch * args.t * bytes, indices = args.batch * (args.table == nullptr ? 1 : args.entries + 1);
  return {0, 0, 0, 0, rows + indices * 4, rows};
}

// The cache is a pool with a page per entry.
KernelReport cache_write(const CacheWriteArgs& args) {
  return page_write({args.cache_in, args.cache, args.rows, nullptr, args.position, args.elem_size, args.batch,
                     args.cache_rows, args.batch, args.count, 1, args.inner, args.threads});
}

}  // namespace systole::cpu::SYSTOLE_ISA

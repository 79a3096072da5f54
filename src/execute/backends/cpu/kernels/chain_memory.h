#pragma once
// Steps of a chain that load or store values: constants, counters, memory, and type conversions.

#include "execute/backends/cpu/kernels/chain_block.h"

namespace systole::cpu::SYSTOLE_ISA {
namespace {

void constant_step(const ChainStep& s, const Block& b) {
  if (s.elem == Elem::i64) {
    for (i64 i = 0; i < b.n; ++i) b.w(s.dst)[i] = static_cast<std::int64_t>(s.value);
  } else if (s.elem == Elem::i32 || s.elem == Elem::boolean) {
    const std::int32_t v = s.elem == Elem::i32 ? static_cast<std::int32_t>(s.value) : s.value != 0 ? -1 : 0;
    for (i64 i = 0; i < b.padded; ++i) b.i(s.dst)[i] = v;
  } else {
    const F v = splat(static_cast<float>(s.value));
    const F rounded = s.elem == Elem::bf16 ? round_bf16(v) : v;
    for (i64 i = 0; i < b.padded; i += kLanes) store(b.f(s.dst) + i, rounded);
  }
}

// Runs of constant or consecutive operand index: fn(position, count, index, step) with step 0 or 1.
template <typename Fn>
inline void runs(const IndexPattern& pattern, i64 begin, i64 n, const Fn& fn) {
  if (pattern.period == 0) {
    fn(i64{0}, n, begin, 1);
    return;
  }
  for (i64 done = 0; done < n;) {
    const i64 i = begin + done;
    const i64 index = (i / pattern.inner) % pattern.period;
    if (pattern.inner == 1 && pattern.period > 1) {
      const i64 count = lesser(n - done, pattern.period - index);
      fn(done, count, index, 1);
      done += count;
    } else {
      const i64 count = pattern.period == 1 ? n - done : lesser(n - done, pattern.inner - i % pattern.inner);
      fn(done, count, index, 0);
      done += count;
    }
  }
}

void iota_step(const ChainStep& s, const Block& b) {
  runs(s.pattern, b.begin, b.n, [&](i64 at, i64 count, i64 index, int step) {
    for (i64 i = 0; i < count; ++i) {
      const i64 v = index + i * step;
      if (s.elem == Elem::i64) {
        b.w(s.dst)[at + i] = v;
      } else if (s.elem == Elem::i32) {
        b.i(s.dst)[at + i] = static_cast<std::int32_t>(v);
      } else {
        const float f = static_cast<float>(v);
        b.f(s.dst)[at + i] = s.elem == Elem::bf16 ? to_f32(of_f32<Bf16>(f)) : f;
      }
    }
  });
}

template <typename T>
inline void widen(float* y, const T* x, i64 n) {
  i64 i = 0;
  for (; i + kLanes <= n; i += kLanes) store(y + i, load(x + i));
  for (; i < n; ++i) y[i] = to_f32(x[i]);
}

template <typename T>
inline void load_floats(const ChainStep& s, const Block& b) {
  const T* x = static_cast<const T*>(b.pointers[s.slot]);
  float* y = b.f(s.dst);
  runs(s.pattern, b.begin, b.n, [&](i64 at, i64 count, i64 index, int step) {
    if (step == 1) {
      widen(y + at, x + index, count);
    } else {
      const float v = to_f32(x[index]);
      for (i64 i = 0; i < count; ++i) y[at + i] = v;
    }
  });
  for (i64 i = b.n; i < b.padded; ++i) y[i] = 0;
}

template <typename T, typename R, typename Fn>
inline void load_integers(const ChainStep& s, const Block& b, R* y, Fn fn) {
  const T* x = static_cast<const T*>(b.pointers[s.slot]);
  runs(s.pattern, b.begin, b.n, [&](i64 at, i64 count, i64 index, int step) {
    for (i64 i = 0; i < count; ++i) y[at + i] = fn(x[index + i * step]);
  });
  for (i64 i = b.n; i < b.padded; ++i) y[i] = 0;
}

void load_step(const ChainStep& s, const Block& b) {
  switch (s.elem) {
    case Elem::f32: return load_floats<float>(s, b);
    case Elem::bf16: return load_floats<Bf16>(s, b);
    case Elem::i32: return load_integers<std::int32_t>(s, b, b.i(s.dst), [](std::int32_t v) { return v; });
    case Elem::i64: return load_integers<std::int64_t>(s, b, b.w(s.dst), [](std::int64_t v) { return v; });
    case Elem::boolean:
      return load_integers<std::uint8_t>(s, b, b.i(s.dst), [](std::uint8_t v) { return v != 0 ? -1 : 0; });
  }
}

// Registers hold values that the type can represent: steps have rounded.
inline void store_exact(float* p, F v) { store(p, v); }
template <typename T>
inline void store_floats(T* y, const float* x, i64 n) {
  i64 i = 0;
  for (; i + kLanes <= n; i += kLanes) store_exact(y + i, load(x + i));
  for (; i < n; ++i) set_f32(y + i, x[i]);
}

void store_step(const ChainStep& s, const Block& b) {
  void* to = b.pointers[s.slot];
  switch (s.elem) {
    case Elem::f32: return store_floats(static_cast<float*>(to) + b.begin, b.f(s.a), b.n);
    case Elem::bf16: return store_floats(static_cast<Bf16*>(to) + b.begin, b.f(s.a), b.n);
    case Elem::i32:
      __builtin_memcpy(static_cast<std::int32_t*>(to) + b.begin, b.i(s.a), static_cast<std::size_t>(b.n) * 4);
      return;
    case Elem::i64:
      __builtin_memcpy(static_cast<std::int64_t*>(to) + b.begin, b.w(s.a), static_cast<std::size_t>(b.n) * 8);
      return;
    case Elem::boolean: {
      std::uint8_t* y = static_cast<std::uint8_t*>(to) + b.begin;
      const std::int32_t* x = b.i(s.a);
      for (i64 i = 0; i < b.n; ++i) y[i] = static_cast<std::uint8_t>(x[i] & 1);
    }
  }
}

// Toward zero, saturating; NaN becomes 0.
inline std::int64_t truncated(double v, double lowest, double beyond) {
  if (v != v) return 0;
  if (v <= lowest) return static_cast<std::int64_t>(lowest);
  if (v >= beyond) return beyond == 0x1p63 ? 0x7fffffffffffffff : 0x7fffffff;
  return static_cast<std::int64_t>(v);
}

// value(i) is the operand as double or integer; `from` decides which overload of the destination applies.
template <typename Read>
inline void cast_to(const ChainStep& s, const Block& b, Read read) {
  switch (s.elem) {
    case Elem::f32:
      for (i64 i = 0; i < b.n; ++i) b.f(s.dst)[i] = static_cast<float>(read(i));
      return;
    case Elem::bf16:
      for (i64 i = 0; i < b.n; ++i) b.f(s.dst)[i] = to_f32(of_f32<Bf16>(static_cast<float>(read(i))));
      return;
    case Elem::i32:
      for (i64 i = 0; i < b.n; ++i)
        b.i(s.dst)[i] = static_cast<std::int32_t>(truncated(static_cast<double>(read(i)), -0x1p31, 0x1p31));
      return;
    case Elem::i64:
      for (i64 i = 0; i < b.n; ++i) b.w(s.dst)[i] = truncated(static_cast<double>(read(i)), -0x1p63, 0x1p63);
      return;
    case Elem::boolean:
      for (i64 i = 0; i < b.n; ++i) b.i(s.dst)[i] = read(i) != 0 ? -1 : 0;
      return;
  }
}

void cast_step(const ChainStep& s, const Block& b) {
  const bool from_float = s.from == Elem::f32 || s.from == Elem::bf16;
  if (from_float && (s.elem == Elem::f32 || s.elem == Elem::bf16)) {
    map1(s, b, [](F x) { return x; });
  } else if (from_float) {
    cast_to(s, b, [x = b.f(s.a)](i64 i) { return x[i]; });
  } else if (s.from == Elem::i32) {
    if (s.elem == Elem::i64) {
      for (i64 i = 0; i < b.n; ++i) b.w(s.dst)[i] = b.i(s.a)[i];
    } else {
      cast_to(s, b, [x = b.i(s.a)](i64 i) { return x[i]; });
    }
  } else if (s.from == Elem::boolean) {
    cast_to(s, b, [x = b.i(s.a)](i64 i) { return x[i] & 1; });
  } else if (s.elem == Elem::i64) {
    for (i64 i = 0; i < b.n; ++i) b.w(s.dst)[i] = b.w(s.a)[i];
  } else {
    cast_to(s, b, [x = b.w(s.a)](i64 i) { return x[i]; });
  }
}

}  // namespace
}  // namespace systole::cpu::SYSTOLE_ISA

#include "execute/data/images/resample.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "execute/data/images/decoders.h"

namespace systole {
namespace {

constexpr int kBits = 22;                // of a weight: 8 of a pixel and 2 to spare make 32
constexpr int kLower = 11;               // of these in the lower part, so that both fit 16-bit products
constexpr std::size_t kBlock = 4;        // taps
constexpr int kHalf = 1 << (kBits - 1);  // rounds

std::size_t blocks_of(const ResampleTaps& taps, std::size_t output) {
  return (static_cast<std::size_t>(taps.used[output]) + kBlock - 1) / kBlock;
}
const std::int16_t* weights_of(const ResampleTaps& taps, std::size_t output) {
  return taps.weights.data() + output * static_cast<std::size_t>(taps.taps) * 2;
}

// One output of the taps: the sum over inputs that lie `step` bytes apart.
std::uint8_t weighted(const std::uint8_t* input, std::size_t step, const ResampleTaps& taps, std::size_t output) {
  const std::int16_t* weights = weights_of(taps, output);
  int sum = kHalf;
  for (std::size_t t = 0; t < static_cast<std::size_t>(taps.used[output]); ++t) {
    const std::int16_t* upper = weights + t / kBlock * 2 * kBlock + t % kBlock;
    sum += input[t * step] * ((upper[0] << kLower) + upper[kBlock]);
  }
  return static_cast<std::uint8_t>(std::min(sum >> kBits, 255));
}

// What one pass of a resize reads and writes: the first pass `lines` rows, each to the outputs of the taps; the second
// pass the outputs of the taps, each of rows.
struct Pass {
  const std::uint8_t* from;
  std::size_t from_row;  // bytes
  std::uint8_t* into;
  std::size_t into_row;
  std::size_t lines;
};

void along_rows_plain(const Pass& pass, const ResampleTaps& taps) {
  for (std::size_t row = 0; row < pass.lines; ++row)
    for (std::size_t x = 0; x < taps.first.size(); ++x)
      for (std::size_t c = 0; c < 4; ++c)
        pass.into[row * pass.into_row + 4 * x + c] =
            weighted(pass.from + row * pass.from_row + 4 * static_cast<std::size_t>(taps.first[x] - taps.begin()) + c,
                     4, taps, x);
}

void along_columns_plain(const Pass& pass, const ResampleTaps& taps) {
  for (std::size_t y = 0; y < taps.first.size(); ++y)
    for (std::size_t i = 0; i < pass.into_row; ++i)
      pass.into[y * pass.into_row + i] =
          weighted(pass.from + static_cast<std::size_t>(taps.first[y] - taps.begin()) * pass.from_row + i,
                   pass.from_row, taps, y);
}

#if defined(__x86_64__)
#define AVX2 __attribute__((target("avx2")))

// Pixels are paired to products of two taps each (vpmaddwd), once with the upper and once with the lower parts.
struct Sums {
  __m256i upper, lower;
};
AVX2 inline void add(Sums& sums, __m256i pairs, __m256i upper, __m256i lower) {
  sums.upper = _mm256_add_epi32(sums.upper, _mm256_madd_epi16(pairs, upper));
  sums.lower = _mm256_add_epi32(sums.lower, _mm256_madd_epi16(pairs, lower));
}
AVX2 inline __m256i total(const Sums& sums) {
  return _mm256_add_epi32(_mm256_slli_epi32(sums.upper, kLower), sums.lower);
}
AVX2 inline __m256i rounded(__m256i sum) {
  return _mm256_srai_epi32(_mm256_add_epi32(sum, _mm256_set1_epi32(kHalf)), kBits);
}

// Taps 0 and 1 of the four channels in the lower half of a register, taps 2 and 3 in the upper one.
AVX2 inline __m256i paired(const std::uint8_t* pixels) {
  const __m128i low = _mm_setr_epi8(0, -1, 4, -1, 1, -1, 5, -1, 2, -1, 6, -1, 3, -1, 7, -1);
  const __m128i high = _mm_setr_epi8(8, -1, 12, -1, 9, -1, 13, -1, 10, -1, 14, -1, 11, -1, 15, -1);
  const __m128i four = _mm_loadu_si128(reinterpret_cast<const __m128i*>(pixels));
  return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(four), _mm256_set_m128i(high, low));
}

// The halves of two rows' sums added: one row's pixel in each half.
AVX2 inline __m256i joined(const Sums& one, const Sums& other) {
  const __m256i a = total(one), b = total(other);
  return rounded(_mm256_add_epi32(_mm256_permute2x128_si256(a, b, 0x20), _mm256_permute2x128_si256(a, b, 0x31)));
}

inline void put(std::uint8_t* into, int pixel) { std::memcpy(into, &pixel, sizeof pixel); }

// Four rows at once share the weights; the last ones may be the same row.
AVX2 void along_rows_avx2(const Pass& pass, const ResampleTaps& taps) {
  const __m256i uppers = _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1), lowers = _mm256_setr_epi32(2, 2, 2, 2, 3, 3, 3, 3);
  for (std::size_t row = 0; row < pass.lines; row += 4) {
    const std::uint8_t* from[4];
    std::uint8_t* into[4];
    for (std::size_t i = 0; i < 4; ++i) {
      from[i] = pass.from + std::min(row + i, pass.lines - 1) * pass.from_row;
      into[i] = pass.into + std::min(row + i, pass.lines - 1) * pass.into_row;
    }
    for (std::size_t x = 0; x < taps.first.size(); ++x) {
      const std::int16_t* weights = weights_of(taps, x);
      std::size_t at = 4 * static_cast<std::size_t>(taps.first[x] - taps.begin());
      Sums a{}, b{}, c{}, d{};
      for (std::size_t block = blocks_of(taps, x); block > 0; --block, weights += 2 * kBlock, at += 4 * kBlock) {
        const __m256i both = _mm256_castsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(weights)));
        const __m256i upper = _mm256_permutevar8x32_epi32(both, uppers);
        const __m256i lower = _mm256_permutevar8x32_epi32(both, lowers);
        add(a, paired(from[0] + at), upper, lower);
        add(b, paired(from[1] + at), upper, lower);
        add(c, paired(from[2] + at), upper, lower);
        add(d, paired(from[3] + at), upper, lower);
      }
      const __m256i words = _mm256_packs_epi32(joined(a, b), joined(c, d));  // of rows 0, 2, 1, 3
      const __m256i bytes = _mm256_packus_epi16(words, words);
      const __m128i even = _mm256_castsi256_si128(bytes), odd = _mm256_extracti128_si256(bytes, 1);
      put(into[0] + 4 * x, _mm_cvtsi128_si32(even));
      put(into[1] + 4 * x, _mm_cvtsi128_si32(odd));
      put(into[2] + 4 * x, _mm_extract_epi32(even, 1));
      put(into[3] + 4 * x, _mm_extract_epi32(odd, 1));
    }
  }
}

AVX2 inline __m256i pair_of(const std::int16_t* weights) {
  int pair;
  std::memcpy(&pair, weights, sizeof pair);
  return _mm256_set1_epi32(pair);
}

// 16 bytes at a time; the last may write behind a row, where the next one is written later, or padding is.
AVX2 void along_columns_avx2(const Pass& pass, const ResampleTaps& taps) {
  for (std::size_t y = 0; y < taps.first.size(); ++y) {
    const std::uint8_t* from = pass.from + static_cast<std::size_t>(taps.first[y] - taps.begin()) * pass.from_row;
    const auto used = static_cast<std::size_t>(taps.used[y]);
    for (std::size_t i = 0; i < pass.into_row; i += 16) {
      Sums left{}, right{};
      for (std::size_t t = 0; t < used; t += 2) {
        const std::int16_t* weights = weights_of(taps, y) + t / kBlock * 2 * kBlock + t % kBlock;
        const __m256i upper = pair_of(weights), lower = pair_of(weights + kBlock);
        const std::uint8_t* one = from + t * pass.from_row + i;
        const std::uint8_t* other = t + 1 < used ? one + pass.from_row : one;  // of weight 0
        const __m128i a = _mm_loadu_si128(reinterpret_cast<const __m128i*>(one));
        const __m128i b = _mm_loadu_si128(reinterpret_cast<const __m128i*>(other));
        add(left, _mm256_cvtepu8_epi16(_mm_unpacklo_epi8(a, b)), upper, lower);
        add(right, _mm256_cvtepu8_epi16(_mm_unpackhi_epi8(a, b)), upper, lower);
      }
      const __m256i words =
          _mm256_permute4x64_epi64(_mm256_packs_epi32(rounded(total(left)), rounded(total(right))), 0xD8);
      const __m128i bytes = _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(pass.into + y * pass.into_row + i), bytes);
    }
  }
}
#endif

double triangle(double x) { return std::max(0.0, 1.0 - std::abs(x)); }

}  // namespace

std::vector<std::uint8_t> with_four_channels(const Image& image) {
  const std::size_t pixels = static_cast<std::size_t>(image.width) * static_cast<std::size_t>(image.height);
  const auto channels = static_cast<std::size_t>(image.channels);
  std::vector<std::uint8_t> wide(pixels * 4 + kPixelPadding);
  for (std::size_t i = 0; i < pixels; ++i)
    for (std::size_t c = 0; c < 4; ++c) wide[4 * i + c] = image.pixels[i * channels + std::min(c, channels - 1)];
  return wide;
}

void make_taps(int size, int to, int from, int count, ResampleTaps& taps) {
  const double scale = static_cast<double>(size) / to,
               wide = std::max(1.0, scale);  // wide: half of the triangle's base
  taps.taps = (static_cast<int>(std::ceil(wide)) * 2 + 1 + 3) / 4 * 4;
  const auto outputs = static_cast<std::size_t>(count);
  taps.first.resize(outputs);
  taps.used.resize(outputs);
  taps.weights.assign(outputs * static_cast<std::size_t>(taps.taps) * 2, 0);
  std::vector<double> shares(static_cast<std::size_t>(taps.taps));
  for (std::size_t i = 0; i < outputs; ++i) {
    const double centre = (from + static_cast<double>(i) + 0.5) * scale;
    const int first = std::max(0, static_cast<int>(centre - wide + 0.5));
    const int used = std::min(size, static_cast<int>(centre + wide + 0.5)) - first;
    taps.first[i] = first;
    taps.used[i] = used;
    double sum = 0;
    for (int t = 0; t < used; ++t)
      sum += shares[static_cast<std::size_t>(t)] = triangle((t + first - centre + 0.5) / wide);
    std::int16_t* weights = taps.weights.data() + i * static_cast<std::size_t>(taps.taps) * 2;
    for (std::size_t t = 0; t < static_cast<std::size_t>(used); ++t) {
      const int weight = static_cast<int>(0.5 + shares[t] / sum * (1 << kBits));
      std::int16_t* upper = weights + t / kBlock * 2 * kBlock + t % kBlock;
      upper[0] = static_cast<std::int16_t>(weight >> kLower);
      upper[kBlock] = static_cast<std::int16_t>(weight & ((1 << kLower) - 1));
    }
  }
}

void resample(const PixelRows& rows, int x, int y, const ResampleTaps& columns, const ResampleTaps& lines,
              std::vector<std::uint8_t>& between, std::vector<std::uint8_t>& into, ResampleKernel kernel) {
  const std::size_t row_bytes = static_cast<std::size_t>(rows.row_pixels) * 4;
  const std::size_t out_bytes = columns.first.size() * 4;
  const auto read = static_cast<std::size_t>(lines.end() - lines.begin());
  between.resize(read * out_bytes + kPixelPadding);
  into.resize(lines.first.size() * out_bytes + kPixelPadding);
  const std::uint8_t* from = rows.pixels + static_cast<std::size_t>(y + lines.begin()) * row_bytes +
                             4 * static_cast<std::size_t>(x + columns.begin());
  const Pass across{from, row_bytes, between.data(), out_bytes, read};
  const Pass down{between.data(), out_bytes, into.data(), out_bytes, 0};
#if defined(__x86_64__)
  if (kernel == ResampleKernel::fastest && __builtin_cpu_supports("avx2")) {
    along_rows_avx2(across, columns);
    return along_columns_avx2(down, lines);
  }
#endif
  along_rows_plain(across, columns);
  along_columns_plain(down, lines);
}

Image resize_image(const Image& image, int width, int height, ResampleKernel kernel) {
  ResampleTaps columns, lines;
  make_taps(image.width, width, 0, width, columns);
  make_taps(image.height, height, 0, height, lines);
  const std::vector<std::uint8_t> wide = with_four_channels(image);
  std::vector<std::uint8_t> between, out;
  resample({wide.data(), image.width}, 0, 0, columns, lines, between, out, kernel);
  Image made{width, height, image.channels, {}};
  const auto channels = static_cast<std::size_t>(image.channels);
  made.pixels.resize(static_cast<std::size_t>(width) * static_cast<std::size_t>(height) * channels);
  for (std::size_t i = 0; i < made.pixels.size(); ++i) made.pixels[i] = out[i / channels * 4 + i % channels];
  return made;
}

}  // namespace systole

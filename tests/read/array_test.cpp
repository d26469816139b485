// Arrays and images from .npy, .npz, idx, CIFAR-10 and PNG files, whole, damaged and hostile.
#include "fathom/read/array.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <random>

#include "fathom/read/cifar10.hpp"
#include "fathom/read/idx.hpp"
#include "fathom/read/md5.hpp"
#include "fathom/read/npy.hpp"
#include "fathom/read/npz.hpp"
#include "fathom/read/png.hpp"
#include "fathom/support/error.hpp"
#include "support/plain/files.hpp"

namespace fathom {
namespace {

using namespace fathom::testing;
using Numbers = std::vector<double>;
using Shape = std::vector<std::int64_t>;

template <class T> std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

template <class Read> auto from_memory(Read read, const std::string& file, const ReadLimits& limits = {}) {
  MemorySource source("test", file);
  return read(source, limits);
}
Array npy_of(const std::string& file) {
  return from_memory([](auto& source, auto& limits) { return read_npy(source, limits); }, file);
}
Array idx_of(const std::string& file) {
  return from_memory([](auto& source, auto& limits) { return read_idx(source, limits); }, file);
}
Array png_of(const std::string& file) {
  return from_memory([](auto& source, auto& limits) { return read_png(source, limits); }, file);
}
CifarBatch cifar_of(const std::string& file) {
  return from_memory([](auto& source, auto& limits) { return read_cifar10(source, limits); }, file);
}

std::string complaint(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) { return error.what(); }
  return "no error";
}

#define EXPECT_COMPLAINT(work, part)                                      \
  {                                                                       \
    const std::string said = complaint([&] { work; });                    \
    EXPECT_NE(said.find(part), std::string::npos) << "it says: " << said; \
  }

TEST(Npy, HasEveryNumericTypeInBothByteOrders) {
  const Array doubles = npy_of(npy("<f8", "False", "(2, 3)", bytes_of<double>({1, 2, 3, 4, 5, -0.1})));
  EXPECT_EQ(doubles.shape, (Shape{2, 3}));
  EXPECT_EQ(doubles.type, ElementType::float64);
  EXPECT_EQ(numbers(doubles), (Numbers{1, 2, 3, 4, 5, -0.1}));
  EXPECT_EQ(numbers(npy_of(npy("<f4", "False", "(1,)", bytes_of<float>({0.5f})))), (Numbers{0.5}));
  EXPECT_EQ(numbers(npy_of(npy("<i8", "False", "(1,)", bytes_of<std::int64_t>({-7})))), (Numbers{-7}));
  EXPECT_EQ(numbers(npy_of(npy("<u4", "False", "(1,)", bytes_of<std::uint32_t>({4000000000})))),
            (Numbers{4e9}));
  EXPECT_EQ(numbers(npy_of(npy(">i2", "False", "(2,)", std::string("\x01\x02\xFF\xFE", 4)))),
            (Numbers{258, -2}));
  EXPECT_EQ(numbers(npy_of(npy("|i1", "False", "(1,)", "\xFF"))), (Numbers{-1}));
  EXPECT_EQ(numbers(npy_of(npy("|u1", "False", "(1,)", "\xFF"))), (Numbers{255}));
  EXPECT_EQ(numbers(npy_of(npy("|b1", "False", "(2,)", std::string("\x00\x01", 2)))), (Numbers{0, 1}));
}

TEST(Npy, HasScalarsEmptyArraysAndColumnMajorOnes) {
  const Array scalar = npy_of(npy("<f8", "False", "()", bytes_of<double>({3})));
  EXPECT_EQ(scalar.shape, Shape{});
  EXPECT_EQ(numbers(scalar), Numbers{3});
  EXPECT_EQ(npy_of(npy("<f8", "False", "(0, 5)", "")).shape, (Shape{0, 5}));
  const std::string stored = bytes_of<double>({1, 4, 2, 5, 3, 6});
  EXPECT_EQ(numbers(npy_of(npy("<f8", "True", "(2, 3)", stored))), (Numbers{1, 2, 3, 4, 5, 6}));
  // a[i, j, k] = 100 i + 10 j + k, column by column: i runs fastest.
  std::vector<std::int32_t> cube;
  for (int k = 0; k < 4; ++k)
    for (int j = 0; j < 3; ++j)
      for (int i = 0; i < 2; ++i) cube.push_back(100 * i + 10 * j + k);
  const Numbers ordered = numbers(npy_of(npy("<i4", "True", "(2, 3, 4)", bytes_of(cube))));
  for (std::size_t n = 0; n < 24; ++n)
    EXPECT_EQ(ordered[n], double(100 * (n / 12) + 10 * (n / 4 % 3) + n % 4));
}

TEST(Npy, SaysWhatItCannotRead) {
  EXPECT_COMPLAINT(npy_of("no numpy at all"), "`test` is not a .npy file of version 1 to 3");
  EXPECT_COMPLAINT(npy_of(npy("|O", "False", "(1,)", "x")), "has elements of type `|O`");
  EXPECT_COMPLAINT(npy_of(npy("<c16", "False", "(1,)", "x")), "booleans, integers, float32 and float64");
  EXPECT_COMPLAINT(npy_of(npy("<f8", "False", "(2,)", bytes_of<double>({1}))),
                   "ends early, within its elements");
  EXPECT_COMPLAINT(npy_of(npy("<f8", "False", "(1,)", bytes_of<double>({1, 2}))), "goes on after its array");
  EXPECT_COMPLAINT(npy_of(npy("<f8", "Maybe", "(1,)", "")), "its header is damaged");
  EXPECT_COMPLAINT(npy_of(npy("<f8", "False", "(-1,)", "")), "its header is damaged");
  EXPECT_COMPLAINT(npy_of(npy("<f8', 'x': '", "False", "(1,)", "")), "its header is damaged");
}

TEST(Npy, DoesNotBelieveALengthItCannotSee) {
  EXPECT_COMPLAINT(npy_of(npy("<f8", "False", "(4294967296, 4294967296, 4294967296)", "")),
                   "asks for an array beyond the limit of 4096 MiB");
  EXPECT_COMPLAINT(npy_of(npy("<f8", "False", "(9223372036854775807,)", "")), "beyond the limit");
  EXPECT_COMPLAINT(npy_of(npy("<f8", "False", "(99999999999999999999,)", "")), "its header is damaged");
  rusage before = {}, after = {};
  getrusage(RUSAGE_SELF, &before);
  EXPECT_COMPLAINT(npy_of(npy("|u1", "False", "(4000000000,)", "short")), "ends early");
  getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 64 << 10) << "kB";
}

TEST(Npz, HoldsArraysByName) {
  const std::string x = npy("<f8", "False", "(2,)", bytes_of<double>({1, 2}));
  const std::string y = npy("<i8", "False", "(1000,)", bytes_of(std::vector<std::int64_t>(1000, 7)));
  for (const Packing packing : {Packing::stored, Packing::deflated}) {
    const auto arrays =
        read_npz(zip({{"x.npy", x}, {"deep/y.npy", y}, {"readme.txt", "hello"}}, packing), "test.npz");
    ASSERT_EQ(arrays.size(), 2u);
    EXPECT_EQ(numbers(arrays.at("x")), (Numbers{1, 2}));
    EXPECT_EQ(numbers(arrays.at("deep/y")), Numbers(1000, 7));
  }
}

TEST(Npz, SaysWhatItCannotRead) {
  const std::string x = npy("<f8", "False", "(2,)", bytes_of<double>({1, 2}));
  std::string archive = zip({{"x.npy", x}}, Packing::stored);
  archive[archive.find("NUMPY") + 130] ^= 1;
  EXPECT_COMPLAINT(read_npz(archive, "a.npz"), "`a.npz` entry `x.npy` is damaged: its checksum is wrong");
  EXPECT_COMPLAINT(read_npz(std::string("PK"), "a.npz"), "is not a zip archive that can be read");
  EXPECT_COMPLAINT(read_npz(std::string(1000, 'P'), "a.npz"), "is not a zip archive that can be read");
  EXPECT_COMPLAINT(read_npz(zip({{"a.txt", "b"}}, Packing::stored), "a.npz"), "holds no arrays");
  EXPECT_COMPLAINT(read_npz(zip({{"x.npy", x}, {"x.npy", x}}, Packing::stored), "a.npz"),
                   "two arrays called `x`");
}

TEST(Npz, BoundsABomb) {
  // 64 MiB of zeros in 64 KiB; the limit holds for all arrays together.
  const std::string zeros = npy("|u1", "False", "(67108864,)", std::string(64 << 20, '\0'));
  const std::string bomb = zip({{"a.npy", zeros}, {"b.npy", zeros}}, Packing::deflated);
  EXPECT_LT(bomb.size(), std::size_t{200} << 10);
  EXPECT_EQ(read_npz(bomb, "bomb.npz").size(), 2u);
  EXPECT_COMPLAINT(read_npz(bomb, "bomb.npz", {.bytes = std::size_t{100} << 20}),
                   "beyond the limit of 36 MiB");
}

TEST(Idx, HasTheFormatOfMnist) {
  const Array images = idx_of(idx(8, {2, 1, 3}, "\x01\x02\x03\xFD\xFE\xFF"));
  EXPECT_EQ(images.shape, (Shape{2, 1, 3}));
  EXPECT_EQ(numbers(images), (Numbers{1, 2, 3, 253, 254, 255}));
  EXPECT_EQ(numbers(idx_of(idx(13, {1}, std::string("\x3F\x00\x00\x00", 4)))), Numbers{0.5});
  EXPECT_EQ(numbers(idx_of(idx(11, {2}, std::string("\xFF\xFE\x00\x05", 4)))), (Numbers{-2, 5}));
}

TEST(Idx, SaysWhatItCannotRead) {
  EXPECT_COMPLAINT(idx_of("\x01\x02\x03\x04\x05"), "`test` is not an idx file");
  EXPECT_COMPLAINT(idx_of(idx(7, {1}, "x")), "has no element type 7");
  EXPECT_COMPLAINT(idx_of(idx(8, {3}, "xx")), "ends early, within its elements");
  EXPECT_COMPLAINT(idx_of(idx(8, {3}, "xxxx")), "goes on after its array");
  EXPECT_COMPLAINT(idx_of(idx(8, {0xFFFFFFFF, 0xFFFFFFFF}, "x")), "beyond the limit");
  EXPECT_COMPLAINT(idx_of(""), "ends early, within its first 4 bytes");
}

TEST(Idx, MayBeGzippedInSeveralPieces) {
  const std::string file = idx(8, {3}, "abc");
  const std::string packed = deflated(file.substr(0, 5), 31) + deflated(file.substr(5), 31);
  const auto source = inflated(std::make_unique<MemorySource>("test.gz", packed), Wrapping::gzip);
  EXPECT_EQ(numbers(read_idx(*source)), (Numbers{'a', 'b', 'c'}));
}

TEST(Cifar10, HasLabelsAndPlanesOfColour) {
  std::string record(cifar_pixels, '\0');
  for (std::size_t i = 0; i < record.size(); ++i) record[i] = char(i / 1024 + 10);
  const CifarBatch batch = cifar_of(std::string("\x03") + record + std::string("\x09") + record);
  EXPECT_EQ(numbers(batch.labels), (Numbers{3, 9}));
  EXPECT_EQ(batch.images.shape, (Shape{2, 3, 32, 32}));
  EXPECT_EQ(numbers(batch.images)[3072 + 1024], 11);
  EXPECT_COMPLAINT(cifar_of(std::string("\x0A") + record),
                   "record 1 has the label 10, labels go from 0 to 9");
  EXPECT_COMPLAINT(cifar_of(std::string("\xFF") + record),
                   "record 1 has the label 255, labels go from 0 to 9");
  EXPECT_COMPLAINT(cifar_of(std::string("\x03") + record + "\x01"), "ends early, within record 2");
  EXPECT_COMPLAINT(cifar_of(""), "is empty");
}

TEST(Cifar10, IsMadeOfAPictureWhoseRowsAreImages) {
  Array picture{.type = ElementType::uint8, .shape = {2, 1024, 3}};
  for (std::size_t i = 0; i < 2 * cifar_pixels; ++i) picture.bytes += char(i % 251);
  const CifarBatch batch = cifar_of(cifar10_file(picture, std::vector{4, 0}));
  EXPECT_EQ(numbers(batch.labels), (Numbers{4, 0}));
  const Numbers before = numbers(picture), after = numbers(batch.images);
  for (std::size_t image : {0, 1})
    for (std::size_t pixel : {0, 1, 1023})
      for (std::size_t colour : {0, 1, 2})
        EXPECT_EQ(after[image * 3072 + colour * 1024 + pixel], before[image * 3072 + pixel * 3 + colour]);
  EXPECT_COMPLAINT(cifar10_file(picture, std::vector{4}), "a picture of 1 rows of 1024 RGB pixels is needed");
}

TEST(Md5, HasTheDigestsOfRfc1321) {
  const auto digest = [](const std::string& bytes) {
    MemorySource source("test", bytes);
    return md5(source);
  };
  EXPECT_EQ(digest(""), "d41d8cd98f00b204e9800998ecf8427e");
  EXPECT_EQ(digest("abc"), "900150983cd24fb0d6963f7d28e17f72");
  EXPECT_EQ(digest("12345678901234567890123456789012345678901234567890123456789012345678901234567890"),
            "57edf4a22be3c955ac49da2e2107b67a");
}

/// The opposite of the reader's work, for any filter.
std::string filtered(const std::string& row, const std::string& above, std::size_t step, int filter) {
  std::string result(1, char(filter));
  const auto at = [](const std::string& bytes, std::size_t i) {
    return int(static_cast<unsigned char>(bytes[i]));
  };
  for (std::size_t i = 0; i < row.size(); ++i) {
    const int a = i >= step ? at(row, i - step) : 0, b = at(above, i),
              c = i >= step ? at(above, i - step) : 0;
    const int pa = std::abs(b - c), pb = std::abs(a - c), pc = std::abs(a + b - 2 * c);
    const int paeth = pa <= pb && pa <= pc ? a : pb <= pc ? b : c;
    const int prediction[] = {0, a, b, (a + b) / 2, paeth};
    result += char(at(row, i) - prediction[filter]);
  }
  return result;
}

TEST(Png, UndoesEveryFilterForGreyAndColour) {
  std::mt19937 random(5);
  for (const int channels : {1, 3}) {
    constexpr std::uint32_t width = 13, height = 20;
    std::string pixels, rows, above(width * std::size_t(channels), '\0');
    for (std::uint32_t y = 0; y < height; ++y) {
      std::string row;
      // Values far apart wrap around; values close together make ties between the predictors.
      for (std::size_t i = 0; i < above.size(); ++i) row += char(random() % (y / 5 % 2 ? 256 : 8));
      rows += filtered(row, above, std::size_t(channels), int(y % 5));
      pixels += row;
      above = row;
    }
    const Array image = png_of(png(width, height, channels == 3 ? 2 : 0, rows));
    EXPECT_EQ(image.shape, (Shape{height, width, channels}));
    EXPECT_EQ(image.bytes, pixels);
  }
}

TEST(Png, SaysWhatItCannotRead) {
  const std::string good = png(2, 1, 0, std::string(3, '\0'));
  EXPECT_EQ(png_of(good).bytes.size(), 2u);
  EXPECT_COMPLAINT(png_of("GIF89a and so on"), "`test` is not a PNG file");
  EXPECT_COMPLAINT(png_of(png(2, 1, 6, std::string(9, '\0'))),
                   "has 8 bits, colour type 6; 8 bits, grey (0) or RGB (2)");
  EXPECT_COMPLAINT(png_of(png(2, 1, 0, std::string(2, '\0'))), "ends early, within its pixels");
  EXPECT_COMPLAINT(png_of(png(2, 1, 0, std::string(4, '\0'))), "goes on after its pixels");
  EXPECT_COMPLAINT(png_of(png(2, 1, 0, std::string("\x07\x00\x00", 3))), "a row has the filter 7");
  EXPECT_COMPLAINT(png_of(png(0, 1, 0, "")), "its image has no pixels");
  EXPECT_COMPLAINT(png_of(png(0x7FFFFFFF, 0x7FFFFFFF, 2, "x")), "beyond the limit");
  std::string flipped = good;
  flipped[20] ^= 1;
  EXPECT_COMPLAINT(png_of(flipped), "the checksum of a chunk is wrong");
}

struct Format {
  std::string name;
  std::string file;
  std::function<void(const std::string&)> read;
};

std::vector<Format> formats() {
  const std::string x = npy("<f8", "True", "(2, 2)", bytes_of<double>({1, 2, 3, 4}));
  const auto npz = [](const std::string& file) { read_npz(file, "test"); };
  return {{"npy", x, npy_of},
          {"npz stored", zip({{"x.npy", x}}, Packing::stored), npz},
          {"npz deflated", zip({{"x.npy", x}}, Packing::deflated), npz},
          {"idx", idx(8, {2, 2}, "abcd"), idx_of},
          {"cifar", std::string(1 + cifar_pixels, '\1'), cifar_of},
          {"png", png(3, 2, 2, std::string(20, '\0')), png_of}};
}

TEST(EveryFormat, FindsATruncation) {
  for (const Format& format : formats()) {
    EXPECT_EQ(complaint([&] { format.read(format.file); }), "no error") << format.name;
    for (std::size_t size = 0; size < format.file.size(); ++size)
      EXPECT_NE(complaint([&] { format.read(format.file.substr(0, size)); }), "no error")
          << format.name << " " << size;
  }
}

TEST(EveryFormat, SurvivesAFlippedBitAnywhere) {
  for (const Format& format : formats()) {
    for (std::size_t bit = 0; bit < 8 * std::min<std::size_t>(format.file.size(), 1000); ++bit) {
      std::string flipped = format.file;
      flipped[bit / 8] ^= char(1 << bit % 8);
      const std::string said = complaint([&] { format.read(flipped); });
      const bool checked = format.name == "png";  // every byte of it is under a checksum
      EXPECT_TRUE(!checked || said != "no error") << "bit " << bit;
    }
  }
}

}  // namespace
}  // namespace fathom

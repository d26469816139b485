/// MD5 (RFC 1321), by which the well-known data sets are known. Not for secrets.
///
///   md5(*open_source("train-images-idx3-ubyte.gz"));      // of what gzip unpacks
#pragma once

#include <string>

#include "fathom/read/byte_source.hpp"

namespace fathom {

/// 32 hexadecimal digits.
std::string md5(ByteSource& source);

}  // namespace fathom

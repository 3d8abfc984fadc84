# SPDX-License-Identifier: BSD-3-Clause
# find_package(rmem) defines the target rmem::rmem. Its flags, and those of DPDK, are of pkg-config.
include(CMakeFindDependencyMacro)
find_dependency(PkgConfig)

# This file is in LIBDIR/cmake/rmem, rmem.pc in LIBDIR/pkgconfig.
get_filename_component(_rmem_libdir "${CMAKE_CURRENT_LIST_DIR}" REALPATH)
get_filename_component(_rmem_libdir "${_rmem_libdir}/../.." ABSOLUTE)
set(_rmem_path "$ENV{PKG_CONFIG_PATH}")
set(ENV{PKG_CONFIG_PATH} "${_rmem_libdir}/pkgconfig:${_rmem_path}")
pkg_check_modules(rmem_pc QUIET IMPORTED_TARGET rmem)
set(ENV{PKG_CONFIG_PATH} "${_rmem_path}")

if(TARGET PkgConfig::rmem_pc AND NOT TARGET rmem::rmem)
  add_library(rmem::rmem INTERFACE IMPORTED)
  target_link_libraries(rmem::rmem INTERFACE PkgConfig::rmem_pc)
endif()
if(NOT TARGET rmem::rmem)
  set(rmem_FOUND FALSE)
  set(rmem_NOT_FOUND_MESSAGE "pkg-config does not find rmem, or libdpdk that it needs")
endif()
unset(_rmem_libdir)
unset(_rmem_path)

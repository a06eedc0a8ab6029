// primes.cc - reads numbers and says which are prime: the demonstration's program to be compiled.
#include <iostream>

static bool is_prime(long n)
{
	for (long d = 2; d * d <= n; d++)
		if (n % d == 0)
			return false;
	return n > 1;
}

int main()
{
	for (long n; std::cin >> n;)
		std::cout << n << (is_prime(n) ? " is prime\n" : " is not prime\n");
}
